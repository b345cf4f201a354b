"""`claw-local hints`: what fast memory holds."""

from __future__ import annotations

import typer

from .common import JSON_OPTION, print_json, short

app = typer.Typer(help="The hints that stand in the prompt.", no_args_is_help=True)


@app.command("list")
def show(
    everything: bool = typer.Option(False, "--all", help="Also those that are switched off or learned."),
    json_output: bool = JSON_OPTION,
) -> None:
    """List the hints, newest first."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        hints = assistant.hints.list(active_only=not everything)
    if json_output:
        print_json({"hints": hints})
    elif not hints:
        typer.echo("No hints yet. They come from what you say about answers, once learning is on.")
    else:
        for hint in hints:
            where = "every chat" if hint.scope == "everywhere" else f"only its {hint.scope}"
            typer.echo(f"{hint.id:>4}  {hint.state:<12}  {where:<14}  {short(hint.text)}")


@app.command()
def add(text: str = typer.Argument(..., help="How answers should be."), json_output: bool = JSON_OPTION) -> None:
    """Add a hint for every chat."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        hint = assistant.hints.add(text)
    if json_output:
        print_json(hint)
    else:
        typer.echo(f"Hint {hint.id} is in the prompt from the next answer on.")


@app.command()
def drop(hint: int = typer.Argument(..., help="The hint's id."), json_output: bool = JSON_OPTION) -> None:
    """Take a hint out of the prompt."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        dropped = assistant.hints.drop(hint)
    if json_output:
        print_json(dropped)
    else:
        typer.echo(f"Hint {dropped.id} is out of the prompt.")
