"""`claw-local adapters`: which there are, which is in use, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from . import complete
from .ask import adapter_choice
from .common import JSON_OPTION, print_json, short

app = typer.Typer(help="The personal adapters.", no_args_is_help=True)
MODEL_OPTION = typer.Option(
    None, "--model", help="The model whose adapters are meant.", autocompletion=complete.model_names
)


@app.command("list")
def show_all(json_output: bool = JSON_OPTION) -> None:
    """List the adapters, newest first."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        records = assistant.adapters.list()
    if json_output:
        print_json({"adapters": records})
    elif not records:
        typer.echo("No adapters yet: the base model answers. `claw-local learn now` makes one.")
    else:
        for record in records:
            parent = f"from {record.parent_id}" if record.parent_id else "from base"
            typer.echo(
                f"{record.id:>4}  {record.state:<9}  {parent:<10}  {record.created_at[:16]}  {short(record.reason)}"
            )


@app.command()
def show(
    adapter: int = typer.Argument(..., help="The adapter's id.", autocompletion=complete.adapter_ids),
    json_output: bool = JSON_OPTION,
) -> None:
    """Show one adapter with the gate's report."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        record = assistant.adapters.get(adapter)
    if json_output:
        print_json(record)
        return
    typer.echo(f"Adapter {record.id}: {record.state}. {record.reason}")
    typer.echo(f"Made from {len(record.lineage)} of your messages, recipe {json.dumps(record.recipe)}")
    report = Path(record.gguf_path).with_name("gate.md")
    if record.gguf_path and report.is_file():
        typer.echo("\n" + report.read_text("utf-8"))


@app.command()
def use(
    adapter: str = typer.Argument(..., help="An adapter's id, or `base`.", autocompletion=complete.adapter_ids),
    model: Path | None = MODEL_OPTION,
    json_output: bool = JSON_OPTION,
) -> None:
    """Put an adapter, or the base model, into use."""
    from ..assistant import Assistant

    with Assistant.open(model=model) as assistant:
        _say(assistant.adapters.use(adapter_choice(adapter)), json_output)


@app.command()
def rollback(model: Path | None = MODEL_OPTION, json_output: bool = JSON_OPTION) -> None:
    """Go back one step: to the adapter before the one in use."""
    from ..assistant import Assistant

    with Assistant.open(model=model) as assistant:
        _say(assistant.adapters.rollback(), json_output)


def _say(record: Any, json_output: bool) -> None:
    if json_output:
        print_json({"adapter": record.id if record else 0})
    else:
        typer.echo(f"In use from the next answer on: {f'adapter {record.id}' if record else 'the base model'}.")
