"""`claw-local adapters merge`: a model with an adapter in its weights, as one file for any llama.cpp program."""

from __future__ import annotations

from pathlib import Path

import typer

from ..errors import AdapterError, NotFoundError
from ..language import _
from ..named_text import shown
from . import complete
from .common import JSON_OPTION, print_json, size
from .waiting import bar

MODEL_OPTION = typer.Option(
    None, "--model", help="The model the adapter was made for.", autocompletion=complete.model_names
)


def merge(
    adapter: str = typer.Argument(..., help="An adapter's id or name.", autocompletion=complete.adapter_ids),
    out: Path = typer.Argument(..., metavar="OUT.gguf", help="The file to write."),
    quant: str = typer.Option(
        "", "--quant", help="Type of all weights in the file, as in q8_0; without it, each keeps the type it has."
    ),
    weight: float = typer.Option(1.0, "--weight", min=-4.0, max=4.0, help="How strongly the adapter counts."),
    force: bool = typer.Option(False, "--force", help="Write over a file that exists."),
    check: bool = typer.Option(
        True, "--check/--no-check", help="Measure how far the new model is from model + adapter."
    ),
    model: Path | None = MODEL_OPTION,
    json_output: bool = JSON_OPTION,
) -> None:
    """Write the model with an adapter in its weights: a GGUF file that any llama.cpp program opens."""
    from ..adapters.merge import merge as merge_files
    from ..adapters.registry import slots, verify
    from ..assistant import Assistant
    from ..engine.base import AdapterSlot
    from ..targets import check_target

    out = out.expanduser()
    with Assistant.open(model=model) as assistant:
        check_target(out, assistant.paths)
        records = {str(record.id): record for record in assistant.adapters.list()}
        records = {record.name.casefold(): record for record in records.values() if record.name} | records
        record = records.get(adapter.casefold())
        if record is None:
            raise NotFoundError(
                _("There is no adapter {adapter}. `claw-local adapters list` shows those there are.", adapter=adapter)
            )
        if record.model_sha256 != assistant.model_sha256:
            raise AdapterError(
                _(
                    "Adapter {adapter} was made for another model than the one in use. Name that one with --model.",
                    adapter=adapter,
                )
            )
        verify(record)
        base, slot = assistant.model_path, slots(record)[0]
    with bar(quiet=json_output) as report:
        merged = merge_files(
            base,
            [AdapterSlot(slot.path, weight)],
            out,
            quant=quant,
            force=force,
            check=check,
            report=report,
        )
    if json_output:
        print_json(merged)
        return
    typer.echo(
        _(
            "Written: {path} ({size}; the model it was made from has {base_size}), {changed} weights changed.",
            path=shown(merged.path),
            size=size(merged.size),
            base_size=size(merged.base_size),
            changed=merged.changed,
        )
    )
    if merged.distance is not None:
        typer.echo(merged.distance.sentence())
