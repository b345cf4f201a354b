"""`claw-local bench`: how fast this machine is with the model in use."""

from __future__ import annotations

import sys

import typer

from . import complete
from .common import JSON_OPTION, print_json, print_table, size


def bench(
    model: str | None = typer.Option(
        None, "--model", help="A GGUF file instead of the one in the settings.", autocompletion=complete.model_names
    ),
    json_output: bool = JSON_OPTION,
) -> None:
    """Measure this machine with the model in use: loading, reading, writing, judging. Takes about 20 seconds."""
    from ..assistant import Assistant
    from ..bench.measure import measure

    shows = not json_output and sys.stderr.isatty()

    def show(step: str) -> None:
        if shows:
            typer.echo(f"\r\x1b[K{step}…", nl=False, err=True)

    with Assistant.open(model=model) as assistant:
        try:
            seen = measure(assistant, show)
        finally:
            if shows:
                typer.echo("\r\x1b[K", nl=False, err=True)
    if json_output:
        print_json(seen)
        return
    computed = "GPU" if seen.gpu else f"{seen.threads} thread{'s' if seen.threads != 1 else ''}"
    typer.echo(f"{seen.model}, {size(seen.size_bytes)}, {computed}")
    rows = [
        ("loads in", f"{seen.load_s:.2f} s", "file in the disk cache"),
        ("first token after", f"{seen.first_token_s:.2f} s", "a short question"),
        ("reads", f"{seen.prompt_rate:.0f} tokens/s", f"{seen.prompt_tokens} tokens"),
        ("writes", f"{seen.decode_rate:.1f} tokens/s", f"{seen.decode_tokens} tokens"),
        ("judges in", f"{seen.judge_s * 1000:.0f} ms", "one message"),
    ]
    if seen.swap_s is not None:
        rows.append(("changes adapter in", f"{seen.swap_s * 1000:.1f} ms", "out and in again"))
    print_table(rows, right={1})
    for note in seen.notes:
        typer.echo(note)
