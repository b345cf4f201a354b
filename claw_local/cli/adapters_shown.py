"""Adapters as text for a person. It must never ask the assistant for anything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .common import harmless, print_table, short

if TYPE_CHECKING:
    from ..adapters.differing import Difference
    from ..store import AdapterRecord

NO_SETTINGS = ("hints", "likes", "origin", "mix")
"""What stands in a recipe beside settings."""


def label(record: AdapterRecord) -> str:
    """ "3", or "3 (work)"."""
    return f"{record.id} ({harmless(record.name)})" if record.name else str(record.id)


def table(records: Sequence[AdapterRecord], profiles: Mapping[str, Mapping[str, int]]) -> None:
    """All of them, a line each, and what profiles keep to."""
    rows = [
        (str(record.id), record.name or "-", record.state, _made_from(record), record.created_at[:16], record.reason)
        for record in records
    ]
    print_table([(*row[:5], short(row[5])) for row in rows], right=(0,))
    for name, kept in profiles.items():
        typer.echo(f"Profile {name}: {', '.join(str(adapter or 'base') for adapter in kept.values())}")


def _made_from(record: AdapterRecord) -> str:
    if "mix" in record.recipe:
        return "a mix"
    if "origin" in record.recipe:
        return "imported"
    return f"from {record.parent_id}" if record.parent_id else "from base"


def one(record: AdapterRecord) -> None:
    """All that is known of one."""
    recipe = record.recipe
    typer.echo(f"Adapter {label(record)}: {record.state}. {harmless(record.reason)}")
    typer.echo(f"Base model: {harmless(record.architecture)}, hash {record.model_sha256[:16]}…")
    typer.echo(f"Parent: {f'adapter {record.parent_id}' if record.parent_id else 'the base model'}")
    if "mix" in recipe:
        typer.echo(f"A mix of: {', '.join(f'adapter {part} × {weight:g}' for part, weight in recipe['mix'])}")
    origin = recipe.get("origin") or {}
    if origin:
        typer.echo(harmless(f"Imported from {origin.get('from')} ({origin.get('kind')})"))
        if "turns" in origin:
            typer.echo(harmless(f"Made on {str(origin.get('made_at'))[:16]} from {origin['turns']} replies elsewhere"))
    else:
        typer.echo(f"Made from {len(record.lineage)} replies in your chats")
    settings = {name: value for name, value in recipe.items() if name not in NO_SETTINGS}
    if settings:
        typer.echo(f"Recipe: {harmless(json.dumps(settings, ensure_ascii=False))}")
    for hint in recipe.get("hints", ()):
        typer.echo(f"  wish: {short(str(hint))}")
    found = Path(record.gguf_path).with_name("gate.md")
    if record.gguf_path and found.is_file():
        typer.echo("")
        report(found.read_text("utf-8", "replace"))
    elif origin.get("gate"):
        typer.echo(harmless(f"The gate where it was made: {origin['gate'].get('reason', '')}"))
        typer.echo(f"Ask the gate here: claw-local adapters check {record.id}")


def report(markdown: str) -> None:
    typer.echo(harmless(markdown).rstrip("\n"))


def difference(found: Difference) -> None:
    """Two adapters side by side."""
    names = [str(number) if number else "base" for number in (found.first, found.second)]
    typer.echo(f"{found.relation[:1].upper()}{found.relation[1:]}.")
    rows = [("", *names)]
    rows += [(name, *(_value(value) for value in pair)) for name, pair in found.recipe.items()]
    rows += [(name, *(_value(value) for value in pair)) for name, pair in found.gate.items()]
    if found.same_base:
        rows.append(("size of its update", *(f"{norm:.3f}" for norm in found.norms)))
    print_table(rows)
    typer.echo(
        f"Replies that made them: {found.turns[0]} only {names[0]}, {found.turns[1]} only {names[1]}, "
        f"{found.turns[2]} both"
    )
    for side, hint in found.hints:
        typer.echo(f"  only {names[0] if side == 'first' else names[1]} was trained with the wish: {short(hint)}")
    if not found.same_base:
        typer.echo("They are for different base models, so their weights cannot be compared.")
        return
    typer.echo(f"Distance of their updates: {found.distance:.3f}; alike in direction: {found.cosine:+.3f}")
    for layer in found.layers:
        typer.echo(f"  block {layer.block} {layer.module}: {layer.distance:.3f} apart, direction {layer.cosine:+.3f}")


def _value(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
