"""`claw-local feedback`: say outright what an answer was worth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import typer

from ..errors import UsageError
from ..language import _
from .common import JSON_OPTION, print_json
from .hints import say_made_room

if TYPE_CHECKING:
    from ..assistant import TakenBack

LONGEST_EDIT = 10_000_000
"""Most bytes of an answer as it should have been: no model here writes one that long."""


def feedback(
    message: int = typer.Argument(..., help="The answer's message id, as `ask --json` and `history show` print it."),
    verdict: str | None = typer.Argument(None, help="good or bad; none takes back what you said."),
    hint: str | None = typer.Option(None, "--hint", help="How the answer should have been."),
    edit: Path | None = typer.Option(None, "--edit", help="A file with the answer as it should have been; - reads it."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Say whether an answer was good or bad, and how it should have been; or take that back."""
    from ..assistant import Assistant
    from ..named_text import read_text

    if verdict not in (None, "good", "bad", "none"):
        raise UsageError(_("The verdict is good, bad or none, not {verdict!r}.", verdict=verdict))
    if verdict == "none":
        if hint is not None or edit is not None:
            raise UsageError(_("none takes back what you said, so it goes without --hint and --edit."))
        with Assistant.open() as assistant:
            taken = assistant.take_back(message)
        if json_output:
            print_json(taken)
        else:
            typer.echo(" ".join(told_taken_back(taken)))
        return
    text = None
    if edit is not None:
        try:
            text = _from_input() if str(edit) == "-" else read_text(edit.expanduser(), most=LONGEST_EDIT)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else _("it is not UTF-8 text")
            named = _("standard input") if str(edit) == "-" else str(edit)
            raise UsageError(
                _("Cannot read {named}: {reason}. Give a text file.", named=named, reason=reason)
            ) from error
        if not text.strip():
            raise UsageError(_("The answer as it should have been is empty. Write it, or leave --edit out."))
        text = text.rstrip("\n")
    with Assistant.open() as assistant:
        hints = assistant.hints.list()
        signal = assistant.feedback(message, cast(Literal["good", "bad"] | None, verdict), hint=hint, edit=text)
        teaching = assistant.store.messages.teaching_of(message)
        say_made_room(hints, assistant.hints.list())
        kept = assistant.hints.list(active_only=False)
    if json_output:
        print_json(signal)
    else:
        if text:
            typer.echo(_("Your text is kept as the answer it should have been."))
        everywhere = any(one.message_id == message and one.text == signal.hint and one.scope != "turn" for one in kept)
        told = [_("Noted: message {message} scores {score:+d}.", message=message, score=signal.score)]
        if signal.hint and everywhere:
            told.append(_("Hint, for every chat: {hint}", hint=signal.hint))
        elif signal.hint:
            told.append(_("Hint, for this answer alone: {hint}", hint=signal.hint))
        typer.echo(" ".join(told))
        if teaching != "yes":
            off = _("It was written while learning was off, so it teaches only after: claw-local learn on --past")
            typer.echo(off if teaching == "off" else _("This reply never teaches."), err=True)


def told_taken_back(taken: TakenBack) -> list[str]:
    """What was taken back, in sentences."""
    if not taken.signals:
        return [_("You have said nothing about message {id}, so there is nothing to take back.", id=taken.message_id)]
    told = [_("Taken back: what you said about message {id} counts no more.", id=taken.message_id)]
    if any(one.source == "edit" for one in taken.signals):
        told.append(_("Your text stays in the chat, and teaches nothing."))
    told += [_("The hint is gone too: {hint}", hint=one.text) for one in taken.hints]
    if taken.learned_by:
        adapters = ", ".join(str(one) for one in taken.learned_by)
        told.append(
            _(
                "What adapters had learned from it stays in them ({adapters}): claw-local adapters rollback goes back.",
                adapters=adapters,
            )
        )
    return told


def _from_input() -> str:
    """Raises OSError: there is no end of it. UnicodeDecodeError: it is no text."""
    data = sys.stdin.buffer.read(LONGEST_EDIT + 1)
    if len(data) > LONGEST_EDIT:
        raise OSError(None, f"it is larger than {LONGEST_EDIT / 1e6:.0f} MB")
    return data.decode("utf-8-sig")
