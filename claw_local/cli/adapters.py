"""`claw-local adapters`: which there are, which is in use, and the way back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import UsageError
from ..language import _
from . import adapters_shown, complete, packs
from .common import JSON_OPTION, plain, print_json, short
from .waiting import fractions

if TYPE_CHECKING:
    from ..store import AdapterRecord

app = typer.Typer(help="The personal adapters.", no_args_is_help=True)
MODEL_OPTION = typer.Option(
    None, "--model", help="The model whose adapters are meant.", autocompletion=complete.model_names
)
ADAPTER_ARGUMENT = typer.Argument(..., help="The adapter's id or name.", autocompletion=complete.adapter_ids)
CHAT_OPTION = typer.Option(None, "--chat", help="For this chat alone.", autocompletion=complete.chat_ids)
PROFILE_OPTION = typer.Option(None, "--profile", help="For this profile alone: `claw-local chat --profile NAME`.")


@app.command("list")
def show_all(json_output: bool = JSON_OPTION) -> None:
    """List the adapters, newest first, and what profiles keep to."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        records, profiles = assistant.adapters.list(), assistant.adapters.profiles()
    if json_output:
        print_json({"adapters": records, "profiles": profiles})
    elif not records:
        typer.echo(_("No adapters yet: the base model answers. `claw-local learn now` makes one."))
    else:
        adapters_shown.table(records, profiles)


@app.command()
def show(adapter: str = ADAPTER_ARGUMENT, json_output: bool = JSON_OPTION) -> None:
    """Show one adapter: its parent, base model, recipe, what made it, and the gate's report."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        record = assistant.adapters.get(adapter)
    if json_output:
        print_json(record)
    else:
        adapters_shown.one(record)


@app.command()
def use(
    adapter: list[str] = typer.Argument(
        ...,
        metavar="ADAPTER[:WEIGHT]...",
        help="An id or a name, or `base`. Several are mixed: work:0.7 home:0.3. "
        "With --chat or --profile also `default`: what all others use.",
        autocompletion=complete.adapter_ids,
    ),
    chat: int | None = CHAT_OPTION,
    profile: str | None = PROFILE_OPTION,
    model: Path | None = MODEL_OPTION,
    json_output: bool = JSON_OPTION,
) -> None:
    """Put an adapter, a mix of several, or the base model, into use."""
    from ..adapters.gate import refused
    from ..assistant import Assistant

    with Assistant.open(model=model) as assistant:
        record = assistant.adapters.use(adapter, chat=chat, profile=profile)
    if record is not None and refused(record.reason):
        typer.echo(
            _("The gate had refused adapter {id}. {reason}", id=record.id, reason=short(record.reason)), err=True
        )
    if chat is None and profile is None:
        _say(record, json_output)
    elif json_output:
        print_json({"adapter": record.id if record else 0, "chat": chat, "profile": profile})
    else:
        told = {"chat": chat, "profile": profile, "adapter": _called(record)}
        if chat is None:
            words = _("In use from the next answer on in profile {profile}: {adapter}.", **told)
        elif not profile:
            words = _("In use from the next answer on in chat {chat}: {adapter}.", **told)
        else:
            words = _("In use from the next answer on in chat {chat} and in profile {profile}: {adapter}.", **told)
        typer.echo(words)


@app.command()
def rollback(model: Path | None = MODEL_OPTION, json_output: bool = JSON_OPTION) -> None:
    """Go back one step: to the adapter before the one in use."""
    from ..assistant import Assistant

    with Assistant.open(model=model) as assistant:
        _say(assistant.adapters.rollback(), json_output)


@app.command()
def rename(
    adapter: str = ADAPTER_ARGUMENT,
    name: str = typer.Argument(..., help="The new name, to be typed wherever an id can; '' takes it away."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Give an adapter a name."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        record = assistant.adapters.rename(adapter, name)
    if json_output:
        print_json({"adapter": record})
    else:
        typer.echo(
            _("Adapter {id} is called {name} now.", id=record.id, name=record.name)
            if record.name
            else _("Adapter {id} has no name now.", id=record.id)
        )


@app.command()
def remove(
    adapter: str = ADAPTER_ARGUMENT,
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Delete an adapter for good, with its files."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        record = assistant.adapters.get(adapter)
        if not yes:
            if not sys.stdin.isatty() or json_output:
                raise UsageError(_("Nothing was deleted. To delete without being asked, add --yes."))
            typer.echo(
                _(
                    "Adapter {adapter}: {state}. {reason}",
                    adapter=adapters_shown.label(record),
                    state=adapters_shown.state(record),
                    reason=short(record.reason),
                ),
                err=True,
            )
            if not typer.confirm(_("Delete it for good? This cannot be undone."), err=True):
                typer.echo(_("Nothing was deleted."), err=True)
                raise typer.Exit(1)
        assistant.adapters.remove(record.id)
        kept_to = [name for name, chosen in assistant.adapters.profiles().items() if record.id in chosen.values()]
    for name in kept_to:
        typer.echo(_("Profile {name} kept to it, and goes by what is in use now.", name=name), err=True)
    if json_output:
        print_json({"deleted": record.id})
    else:
        typer.echo(_("Deleted: adapter {adapter}.", adapter=adapters_shown.label(record)))


@app.command()
def diff(
    first: str = typer.Argument(..., help="An adapter's id or name, or `base`.", autocompletion=complete.adapter_ids),
    second: str = typer.Argument(..., help="Another one.", autocompletion=complete.adapter_ids),
    json_output: bool = JSON_OPTION,
) -> None:
    """Show what differs between two adapters: recipe, what made them, the gate's figures, and their weights."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        found = assistant.adapters.diff(first, second)
    if json_output:
        print_json(found)
    else:
        adapters_shown.difference(found)


@app.command()
def check(adapter: str = ADAPTER_ARGUMENT, model: Path | None = MODEL_OPTION, json_output: bool = JSON_OPTION) -> None:
    """Ask the gate about an adapter, an imported one perhaps: against what is in use. It takes a minute or more."""
    from ..assistant import Assistant

    with Assistant.open(model=model) as assistant:
        record = assistant.adapters.get(adapter)
        with fractions(_("asking the gate"), quiet=json_output) as report:
            verdict = assistant.adapters.check(record.id, report)
    if json_output:
        print_json({"adapter": record.id, "gate": plain(verdict.as_json())})
        return
    adapters_shown.report(verdict.as_markdown())
    if verdict.accepted:
        typer.echo("\n" + _("To put it into use: claw-local adapters use {id}", id=record.name or record.id))


packs.register(app)


def _called(record: AdapterRecord | None) -> str:
    return _("adapter {id}", id=adapters_shown.label(record)) if record else _("the base model")


def _say(record: Any, json_output: bool) -> None:
    if json_output:
        print_json({"adapter": record.id if record else 0})
    else:
        typer.echo(_("In use from the next answer on: {adapter}.", adapter=_called(record)))
