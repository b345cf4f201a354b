"""`claw-local forget`: what was said, out of chats, hints, adapters and files, for good."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import typer

from ..errors import NothingError, UsageError
from ..language import _, ngettext
from .common import JSON_OPTION, harmless, print_json, short
from .complete import chat_ids
from .counted import counted

if TYPE_CHECKING:
    from ..forgetting import Plan, Receipt

_AGO = re.compile(r"(\d{1,6})\s*(m|min|h|d|w)")
_UNITS = {"m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
NOUNS = ("chats", "messages", "signals", "hints", "samples", "drafts", "titles", "settings")
MOST_HINTS = 10


def forget(
    chats: list[int] | None = typer.Argument(None, metavar="CHAT", help="Chats to forget.", autocompletion=chat_ids),
    messages: list[int] = typer.Option(
        [], "--message", "-m", metavar="ID", help="A message to forget, with its question or the replies to it."
    ),
    since: str = typer.Option(
        "",
        "--since",
        metavar="WHEN",
        help="Everything since then: 30m, 2h, 3d, today, yesterday, or 2026-01-31 [18:00].",
    ),
    containing: str = typer.Option("", "--containing", metavar="TEXT", help="Everything with this text in it."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
    receipts: bool = typer.Option(False, "--receipts", help="List what was forgotten until now, without a word of it."),
    sweep: bool = typer.Option(False, "--sweep", help="Clean the disk again, where another program was in the way."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Forget something for good: out of chats, hints, what was learned, and off the disk. Shows first what will go.
    With several of CHAT, --message, --since and --containing, everything goes that fits any of them."""
    from ..assistant import Assistant
    from ..forgetting import Request

    named = bool(chats or messages or since or containing)
    if named + receipts + sweep > 1:
        raise UsageError(
            _("--receipts and --sweep stand alone: nothing was forgotten. Say what to forget without them.")
        )
    with Assistant.open() as assistant:
        forgetting = assistant.forgetting
        if receipts:
            _list(forgetting.receipts(), json_output)
            return
        if sweep:
            _say(forgetting.sweep(), json_output)
            return
        request = Request(
            chats=tuple(dict.fromkeys(chats or [])),
            messages=tuple(dict.fromkeys(messages)),
            since=moment(since) if since else "",
            containing=containing,
        )
        plan = forgetting.plan(request)
        if plan.nothing:
            raise NothingError(_("Nothing of that kind is there, so nothing was forgotten."))
        if not yes:
            if not sys.stdin.isatty() or json_output:
                if json_output:
                    print_json({"plan": plan})
                else:
                    _show(plan)
                raise UsageError(_("Nothing was forgotten. To forget this without being asked, add --yes."))
            _show(plan)
            if not typer.confirm(_("Forget all this for good? It cannot be undone."), err=True):
                typer.echo(_("Nothing was forgotten."), err=True)
                raise typer.Exit(1)
        receipt = forgetting.forget(request)
    _say(receipt, json_output)


def moment(words: str, now: datetime | None = None) -> str:
    """A time as a person says it, as it is stored (UTC, ISO 8601).

    Raises:
        UsageError: it cannot be understood, or is still to come.
    """
    now = now or datetime.now().astimezone()
    said = words.strip().lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        if found := _AGO.fullmatch(said):
            then = now - timedelta(**{_UNITS[found[2]]: int(found[1])})
        elif said in ("today", "yesterday"):
            then = midnight - timedelta(days=said == "yesterday")
        else:
            then = datetime.fromisoformat(words.strip())
            then = then if then.tzinfo else then.replace(tzinfo=now.tzinfo)
        if then > now:
            raise ValueError
        return then.astimezone(UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError) as error:
        raise UsageError(
            _(
                "{words!r} is no time that has been. Write it like 30m, 2h, 3d, today, "
                "yesterday, 2026-01-31 or '2026-01-31 18:00'.",
                words=words,
            )
        ) from error


def _show(plan: Plan) -> None:
    """What will go, on standard error: the answer to the question goes to it, too."""

    def say(text: str) -> None:
        typer.echo(text, err=True)

    say(_("This goes: {counts}.", counts=_counted(plan.counts)))
    asked = plan.request
    if sum(map(bool, (asked.chats, asked.messages, asked.since, asked.containing))) > 1:
        say(_("You named it in several ways: everything goes that fits any of them."))
    for chat, title, count, whole in plan.chats:
        if whole:
            what = _("the whole chat")
        elif count:
            what = ngettext("{number} message of it", "{number} messages of it", count)
        else:
            what = _("its title or settings")
        called = short(title or _("untitled"), 48)
        say(f"{chat:>5}  {called}: {what}")
    for identity, _chat, role, text in plan.messages:
        say(f"       {role} {identity}: {short(text, 60)}")
    if len(plan.messages) < plan.counts["messages"]:
        more = plan.counts["messages"] - len(plan.messages)
        say("       " + ngettext("… {number} more", "… {number} more", more))
    for text in plan.hints[:MOST_HINTS]:
        say("       " + _("hint: {text}", text=short(text, 60)))
    if plan.adapters:
        names = ", ".join(map(str, plan.adapters))
        say(_("Adapters that learned from it, and go: {names}.", names=names) + _instead(plan.in_use))
    if plan.judges:
        say(_("What the judge learned from your feedback goes, too."))
    if plan.backups or plan.logs:
        say(_("These files go, because they may hold it:"))
        for file in (*plan.backups, *plan.logs):
            say(f"       {harmless(str(file))}")
    if plan.learning:
        say(_("The learning run that is going on will be stopped."))
    say(_("Backups and exports that you made yourself are not touched."))


def _say(receipt: Receipt, json_output: bool) -> None:
    if json_output:
        print_json({"receipt": receipt})
        if receipt.left:
            raise typer.Exit(1)
        return
    typer.echo(_("Forgotten: {counts}.", counts=_counted(receipt.counts)))
    if receipt.adapters:
        names = ", ".join(map(str, receipt.adapters))
        again = ngettext(
            "{number} lesson waits to be learned again: `claw-local learn now`.",
            "{number} lessons wait to be learned again: `claw-local learn now`.",
            receipt.again,
        )
        told = _("Adapters that are gone with it: {names}.", names=names) + _instead(receipt.in_use)
        typer.echo(f"{told} {again}" if receipt.again else told)
    if receipt.left:
        for words in receipt.left:
            typer.echo(_("Not clean yet: {words}.", words=harmless(words)), err=True)
        raise typer.Exit(1)
    typer.echo(_("Nothing of it is left in this home. Backups and exports that you made yourself still have it."))


def _list(receipts: list[Receipt], json_output: bool) -> None:
    if json_output:
        print_json({"receipts": receipts})
    elif not receipts:
        typer.echo(_("Nothing was forgotten yet."))
    else:
        for receipt in receipts:
            told = [_counted(receipt.counts)]
            if receipt.adapters:
                told.append(_("adapters {names}", names=", ".join(map(str, receipt.adapters))))
            if receipt.left:
                told.append(_("not clean yet: `claw-local forget --sweep`"))
            typer.echo(f"{receipt.at[:16].replace('T', ' ')}  {'; '.join(told)}")


def _instead(in_use: tuple[int, ...]) -> str:
    if not in_use:
        return ""
    names = ", ".join(_("adapter {id}", id=identity) if identity else _("the base model") for identity in in_use)
    return " " + _("In use instead: {names}.", names=names)


def _counted(counts: dict[str, int]) -> str:
    words = [counted(name, counts[name]) for name in NOUNS if counts.get(name)]
    return ", ".join(words) or _("what stands beside chats")
