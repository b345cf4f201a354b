"""`claw-local history`: the chats that are kept, to be found, read, carried and put away."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import HistoryError, UsageError
from ..language import _, ngettext
from ..named_text import shown
from .common import JSON_OPTION, harmless, plain, print_json, short
from .complete import chat_ids
from .progress import importing

if TYPE_CHECKING:
    from ..assistant import Assistant

app = typer.Typer(help="The chats that are kept.", invoke_without_command=True)

CHAT_ARGUMENT = typer.Argument(..., help="The chat's id.", autocompletion=chat_ids)
CHATS_ARGUMENT = typer.Argument(..., metavar="CHAT...", help="The chats' ids.", autocompletion=chat_ids)
SOME_ARGUMENT = typer.Argument(None, metavar="[CHAT...]", help="The chats' ids.", autocompletion=chat_ids)
MOST_LISTED = 1_000_000
LEFT_OUT = ("prompt_ids", "response_ids", "logprobs")


class Format(StrEnum):
    md = "md"
    json = "json"


FORMAT_OPTION = typer.Option(Format.md, "--format", help="Markdown to read, or JSON to import again.")
OUT_OPTION = typer.Option(None, "--out", "-o", help="The file to write; without it, the text is printed.")


@contextmanager
def _reading() -> Iterator[Assistant]:
    """Open the home to read in it. Where it cannot be written that is said, and it is read all the same."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        if said := assistant.store.database.only_read:
            typer.echo(said, err=True)
        yield assistant


@app.callback()
def history(ctx: typer.Context) -> None:
    """The chats that are kept; without more words, the list of them."""
    if ctx.invoked_subcommand is None:
        show_all(limit=50, archived=False, json_output=False)


@app.command("list")
def show_all(
    limit: int = typer.Option(50, "--limit", min=1, max=MOST_LISTED, help="How many."),
    archived: bool = typer.Option(False, "--archived", help="Those that were archived."),
    json_output: bool = JSON_OPTION,
) -> None:
    """List chats, newest first."""
    with _reading() as assistant:
        chats = assistant.chats(limit=limit, archived=archived)
        asks = not archived and not json_output and sys.stdout is not None and sys.stdout.isatty()
        away = len(assistant.chats(limit=MOST_LISTED, archived=True)) if asks else 0
    if json_output:
        print_json({"chats": chats})
    elif not chats:
        typer.echo(_("No chats are archived.") if archived else _("No chats yet. Start one with: claw-local chat"))
    else:
        for chat in chats:
            typer.echo(f"{chat.id:>5}  {chat.updated_at[:16].replace('T', ' ')}  {_title(chat)}")
    if away:
        typer.echo(
            ngettext(
                "{number} archived: claw-local history list --archived",
                "{number} archived: claw-local history list --archived",
                away,
            )
        )


@app.command()
def search(
    words: list[str] = typer.Argument(..., help="What to look for; quotes make a phrase: '\"by heart\"'."),
    limit: int = typer.Option(20, "--limit", min=1, max=MOST_LISTED, help="How many."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Find messages and titles, newest first. The beginning of a word is enough."""
    with _reading() as assistant:
        found = assistant.history.search(" ".join(words), limit=limit)
    if json_output:
        print_json({"found": found})
        return
    for hit in found:
        typer.echo(f"{hit.chat_id:>5}  {hit.created_at[:16].replace('T', ' ')}  {_title(hit)}")
        typer.echo(f"       {hit.role} {hit.message_id}: {_marked(hit.snippet, hit.marks)}")
    if not found:
        typer.echo(_("Nothing was found."), err=True)


@app.command()
def show(
    chat: int = CHAT_ARGUMENT,
    every: bool = typer.Option(False, "--all", help="Every branch, not only the one that is shown."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Print a chat with its message ids and signals."""
    with _reading() as assistant:
        record = assistant.chat(chat)
        branch = assistant.messages(chat)
        messages = assistant.history.messages(chat) if every else branch
        signals = assistant.signals([message.id for message in messages])
    shown = {message.id for message in branch}
    if json_output:
        listed = [
            {**{k: v for k, v in plain(m).items() if k not in LEFT_OUT}, "signals": plain(signals[m.id])}
            for m in messages
        ]
        if every:
            listed = [{**message, "shown": message["id"] in shown} for message in listed]
        print_json({"chat": record, "messages": listed})
        return
    for message in messages:
        marks = "".join(f"  [{signal.source} {signal.score:+d}]" for signal in signals[message.id])
        if every:
            marks += "  " + (_("after {id}", id=message.parent_id) if message.parent_id else _("first"))
            marks += "" if message.id in shown else ", " + _("not shown")
        typer.echo(f"{message.id} {message.role}{marks}\n{harmless(message.content)}\n")


@app.command()
def export(
    chats: list[int] | None = SOME_ARGUMENT,
    everything: bool = typer.Option(False, "--all", help="Every chat, archived ones too."),
    form: Format = FORMAT_OPTION,
    out: Path | None = OUT_OPTION,
    force: bool = typer.Option(False, "--force", help="Write over the file that --out names, if it exists."),
) -> None:
    """Write chats as Markdown (the branch that is shown) or JSON (all of them)."""
    from ..files import would_replace, write_pieces
    from ..targets import check_target

    if chats and everything:
        raise UsageError(_("Say either the chats' ids or --all, not both."))
    if not chats and not everything:
        raise UsageError(_("Say which chats: their ids, or --all."))
    if out is not None:
        out = out.expanduser()
        if os.path.isdir(out):
            raise UsageError(_("{out} is a folder. Give --out the name of a file in it.", out=out))
    with _reading() as assistant:
        ids = assistant.history.all_ids() if everything else [assistant.chat(c).id for c in dict.fromkeys(chats or [])]
        pieces = assistant.history.json_pieces(ids) if form is Format.json else _markdown(assistant, ids)
        if out is None:
            _print(pieces)
            return
        check_target(out, assistant.paths, streams=True)
        try:
            if not force and would_replace(out):
                raise UsageError(_("{out} exists. Choose another --out, or add --force to write over it.", out=out))
            write_pieces(out, (piece.encode() for piece in pieces))
        except OSError as error:
            raise HistoryError(
                _("{out} cannot be written ({error}). Choose another --out.", out=out, error=error.strerror or error)
            ) from error
    typer.echo(_("Written: {chats} to {path}", chats=_chats(len(ids)), path=shown(out)), err=True)


@app.command("import")
def import_(
    file: Path = typer.Argument(
        ...,
        help="A data export of ChatGPT or Claude (zip, folder or JSON), the database of oterm, elia or llm, or what "
        "`history export --format json` wrote.",
    ),
    learn: bool = typer.Option(
        False, "--learn", help="Let what you say in these chats from now on teach. What was said before never does."
    ),
    json_output: bool = JSON_OPTION,
) -> None:
    """Read chats of other programs in. To do it again doubles nothing; chats that have grown get what is new."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        report = importing(assistant.history, file, learn=learn, quiet=json_output)
    if json_output:
        # What is left out is a list of pairs: by name it is easier to read.
        skipped = [{"what": what, "why": why} for what, why in report.skipped]
        print_json({**plain(report), "skipped": skipped})
    else:
        told = {
            "chats": _chats(report.chats),
            "messages": ngettext("{number} new message", "{number} new messages", report.messages),
        }
        typer.echo(
            _("Imported from {source}: {chats}, {messages}.", source=harmless(report.source), **told)
            if report.source
            else _("Imported: {chats}, {messages}.", **told)
        )
        if report.grown or report.already:
            typer.echo(
                _(
                    "There before: {already} without anything new, {grown} that had grown.",
                    already=report.already,
                    grown=report.grown,
                )
            )
        for what, why in report.skipped:
            typer.echo(_("Left out: {what} ({why}).", what=what, why=why))
        if report.stopped:
            typer.echo(_("Stopped. What was read until then is there; to import again goes on from it."))
    if report.stopped:
        raise typer.Exit(130)


@app.command()
def rename(
    chat: int = CHAT_ARGUMENT,
    title: list[str] = typer.Argument(..., help="The new title."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Give a chat another title."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        record = assistant.history.rename(chat, " ".join(title))
    print_json({"chat": record}) if json_output else typer.echo(
        _("Chat {chat} is called: {title}", chat=chat, title=short(record.title))
    )


@app.command()
def archive(
    chats: list[int] = CHATS_ARGUMENT,
    undo: bool = typer.Option(False, "--undo", help="Bring them back into the list."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Take chats out of the list without deleting them."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        wanted = [assistant.chat(chat).id for chat in dict.fromkeys(chats)]
        for chat in wanted:
            assistant.history.unarchive(chat) if undo else assistant.history.archive(chat)
    if json_output:
        print_json({"archived": not undo, "chats": wanted})
    else:
        told = _chats(len(wanted))
        typer.echo(_("Back in the list: {chats}.", chats=told) if undo else _("Archived: {chats}.", chats=told))


@app.command()
def delete(
    chats: list[int] = CHATS_ARGUMENT,
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Delete chats for good, with what was made known about them."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        records = [assistant.chat(chat) for chat in dict.fromkeys(chats)]
        learned = sorted({a.id for chat in records for a in assistant.history.learned_from(chat.id)})
        if not yes:
            if not sys.stdin.isatty() or json_output:
                raise UsageError(_("Nothing was deleted. To delete without being asked, add --yes."))
            for chat in records:
                typer.echo(f"{chat.id:>5}  {_title(chat)}", err=True)
            if not typer.confirm(_("Delete for good? This cannot be undone."), err=True):
                typer.echo(_("Nothing was deleted."), err=True)
                raise typer.Exit(1)
        assistant.history.delete_for_good(*(chat.id for chat in records))
    if json_output:
        print_json({"deleted": [chat.id for chat in records], "adapters": learned})
        return
    typer.echo(_("Deleted: {chats}.", chats=_chats(len(records))))
    if learned:
        names = ", ".join(str(adapter) for adapter in learned)
        typer.echo(
            _(
                "What adapters learned from them stays in these: {names}. `claw-local adapters list` shows them.",
                names=names,
            )
        )


def _markdown(assistant: Any, ids: list[int]) -> Iterator[str]:
    for place, chat in enumerate(ids):
        yield ("\n---\n\n" if place else "") + assistant.history.markdown(chat)


def _print(pieces: Iterator[str]) -> None:
    """On a terminal without control characters; into a pipe as it is."""
    terminal = sys.stdout.isatty()
    for piece in pieces:
        sys.stdout.write(harmless(piece) if terminal else piece)
    sys.stdout.flush()


def _marked(line: str, marks: tuple[tuple[int, int], ...]) -> str:
    """Hits in bold; without a terminal, `typer` takes the bold out again."""
    shown, end = "", 0
    for start, stop in marks:
        shown += harmless(line[end:start]) + typer.style(harmless(line[start:stop]), bold=True)
        end = stop
    return shown + harmless(line[end:])


def _title(chat: Any) -> str:
    return short(chat.title or _("untitled"))


def _chats(count: int) -> str:
    return ngettext("{number} chat", "{number} chats", count)
