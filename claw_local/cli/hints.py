"""`claw-local hints`: what fast memory holds, and changing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from ..language import _, ngettext
from . import complete
from .common import JSON_OPTION, print_json, print_table, short

if TYPE_CHECKING:
    from ..store import Hint

app = typer.Typer(help="The hints that stand in the prompt.", no_args_is_help=True)
HINT = typer.Argument(..., help="The hint's id.", autocompletion=complete.hint_ids)


@app.command("list")
def show_all(
    everything: bool = typer.Option(False, "--all", help="Also those that are off, learned, or for one answer only."),
    json_output: bool = JSON_OPTION,
) -> None:
    """List the hints, newest first, and say what each does now."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        hints = assistant.hints.list(active_only=not everything)
        others = 0 if everything else len(assistant.hints.list(active_only=False)) - len(hints)
    if json_output:
        print_json({"hints": hints})
        return
    if hints:
        print_table([(str(hint.id), state_in_words(hint), hint.text) for hint in hints], right={0})
    elif not others:
        typer.echo(
            _(
                "No hints yet. They come from what you say about answers, once learning is on; "
                "`claw-local hints add` takes one too."
            )
        )
    if others:
        typer.echo(
            ngettext(
                "{number} more is not in prompts: claw-local hints list --all",
                "{number} more are not in prompts: claw-local hints list --all",
                others,
            ),
            err=True,
        )


@app.command()
def add(text: str = typer.Argument(..., help="How answers should be."), json_output: bool = JSON_OPTION) -> None:
    """Add a hint for every chat."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        before = _active(assistant.hints.list())
        hint = assistant.hints.add(text)
        gone = _gone(before, assistant.hints.list())
    if json_output:
        print_json({**vars(hint), "replaced": [old.id for old in gone]})
        return
    if hint.state == "dropped":
        typer.echo(
            _(
                "Hint {id} is kept, but off: another one says all of it. To have both: claw-local hints on {id}",
                id=hint.id,
            )
        )
    else:
        typer.echo(_("Hint {id} is in the prompt from the next answer on.", id=hint.id))
    _say_replaced(gone)


@app.command()
def on(hint: int = HINT, json_output: bool = JSON_OPTION) -> None:
    """Put a hint back into the prompt: one that was switched off, replaced or learned."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        before = _active(assistant.hints.list())
        back = assistant.hints.on(hint)
        gone = _gone(before, assistant.hints.list())
    if json_output:
        print_json({**vars(back), "replaced": [old.id for old in gone]})
        return
    typer.echo(_("Hint {id} is in the prompt from the next answer on: {text}", id=back.id, text=short(back.text)))
    _say_replaced(gone)


@app.command()
def off(hint: int = HINT, json_output: bool = JSON_OPTION) -> None:
    """Take a hint out of the prompt; `hints on` brings it back."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        switched = assistant.hints.off(hint)
        run = assistant.learn.still_taught(hint)
    if json_output:
        print_json({**vars(switched), "still_taught_by": run.id if run is not None else None})
        return
    typer.echo(_("Hint {id} is out of the prompt. Undo: claw-local hints on {id}", id=switched.id))
    if run is not None:
        typer.echo(
            _(
                "The paused learning run {id} was begun with it, and teaches it all the same "
                "when it goes on. To give that run up: claw-local hints remove {hint}",
                id=run.id,
                hint=switched.id,
            )
        )


# What it was called first.
app.command("drop", hidden=True)(off)


@app.command()
def edit(
    hint: int = HINT,
    text: str = typer.Argument(..., help="How answers should be, said anew."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Say a hint in other words."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        before = _active(assistant.hints.list())
        changed = assistant.hints.edit(hint, text)
        gone = [old for old in _gone(before, assistant.hints.list()) if old.id != changed.id]
        given_up = assistant.learn.given_up()
    if json_output:
        print_json({**vars(changed), "replaced": [old.id for old in gone], "given_up": given_up})
        return
    typer.echo(_("Hint {id} ({state}): {text}", id=changed.id, state=state_in_words(changed), text=short(changed.text)))
    _say_replaced(gone)
    _say_given_up(given_up)


@app.command()
def remove(hint: int = HINT, json_output: bool = JSON_OPTION) -> None:
    """Delete a hint for good, and with it what it would teach; `hints off` only switches it off."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        gone = assistant.hints.remove(hint)
        given_up = assistant.learn.given_up()
    if json_output:
        print_json({**vars(gone), "given_up": given_up})
        return
    typer.echo(_("Hint {id} is deleted: {text}", id=gone.id, text=short(gone.text)))
    _say_given_up(given_up)


def state_in_words(hint: Hint) -> str:
    """What a hint does now."""
    if hint.state == "dropped":
        return _("off")
    if hint.state == "consolidated":
        return _("learned, no longer in prompts")
    return {"everywhere": _("on, in every chat"), "chat": _("on, in its chat"), "turn": _("for its answer only")}[
        hint.scope
    ]


def _active(hints: list[Hint]) -> dict[int, Hint]:
    return {hint.id: hint for hint in hints}


def _gone(before: dict[int, Hint], after: list[Hint]) -> list[Hint]:
    """Those that made room for a newer one that says the same and more, or the opposite."""
    left = {hint.id for hint in after}
    return [hint for hint in before.values() if hint.id not in left]


def _say_replaced(gone: list[Hint]) -> None:
    for old in gone:
        typer.echo(
            _(
                "It replaces {old}, which is off now (claw-local hints on {id}): {text}",
                old=called(old),
                id=old.id,
                text=short(old.text),
            )
        )


def _say_given_up(sentences: Sequence[str]) -> None:
    for words in sentences:
        typer.echo(words)


def say_made_room(before: list[Hint], after: list[Hint]) -> None:
    """Say on standard error which hints a newer one has switched off."""
    from ..memory.fast import made_room

    for old, new in made_room(before, after):
        typer.echo(
            _(
                "Hint {id} ({new}) replaces {old}, which is off now (claw-local hints on {old_id}): {text}",
                id=new.id,
                new=short(new.text),
                old=called(old),
                old_id=old.id,
                text=short(old.text),
            ),
            err=True,
        )


def called(hint: Hint) -> str:
    """A hint by its number, and whether the person added it outright."""
    return _("hint {id}, your own", id=hint.id) if hint.message_id is None else _("hint {id}", id=hint.id)
