"""Adapters as text for a person. It must never ask the assistant for anything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..language import N_, _, ngettext
from .common import harmless, print_table, short

if TYPE_CHECKING:
    from ..adapters.differing import Difference
    from ..store import AdapterRecord

STATES = {
    "candidate": N_("candidate"),
    "active": N_("active"),
    "retired": N_("retired"),
    "rejected": N_("rejected"),
    "forgotten": N_("forgotten"),
}
"""What adapters are, in words."""
NO_SETTINGS = ("hints", "likes", "origin", "mix")
"""What stands in a recipe beside settings."""


def label(record: AdapterRecord) -> str:
    """ "3", or "3 (work)"."""
    return f"{record.id} ({harmless(record.name)})" if record.name else str(record.id)


def state(record: AdapterRecord) -> str:
    """Whether it is in use, in words."""
    return _(STATES.get(record.state, record.state))


def table(records: Sequence[AdapterRecord], profiles: Mapping[str, Mapping[str, int]]) -> None:
    """All of them, a line each, and what profiles keep to."""
    rows = [
        (str(record.id), record.name or "-", state(record), _made_from(record), record.created_at[:16], record.reason)
        for record in records
    ]
    print_table([(*row[:5], short(row[5])) for row in rows], right=(0,))
    for name, kept in profiles.items():
        adapters = ", ".join(str(adapter or "base") for adapter in kept.values())
        typer.echo(_("Profile {name}: {adapters}", name=name, adapters=adapters))


def _made_from(record: AdapterRecord) -> str:
    if "mix" in record.recipe:
        return _("a mix")
    if "origin" in record.recipe:
        return _("imported")
    return _("from {id}", id=record.parent_id) if record.parent_id else _("from base")


def one(record: AdapterRecord) -> None:
    """All that is known of one."""
    recipe = record.recipe
    typer.echo(
        _(
            "Adapter {adapter}: {state}. {reason}",
            adapter=label(record),
            state=state(record),
            reason=harmless(record.reason),
        )
    )
    typer.echo(
        _(
            "Base model: {architecture}, hash {hash}…",
            architecture=harmless(record.architecture),
            hash=record.model_sha256[:16],
        )
    )
    typer.echo(_("Parent: adapter {id}", id=record.parent_id) if record.parent_id else _("Parent: the base model"))
    if "mix" in recipe:
        parts = ", ".join(_("adapter {id}", id=part) + f" × {weight:g}" for part, weight in recipe["mix"])
        typer.echo(_("A mix of: {parts}", parts=parts))
    origin = recipe.get("origin") or {}
    if origin:
        typer.echo(harmless(_("Imported from {source} ({kind})", source=origin.get("from"), kind=origin.get("kind"))))
        if "turns" in origin:
            typer.echo(
                harmless(
                    _(
                        "Made on {date} from {count} replies elsewhere",
                        date=str(origin.get("made_at"))[:16],
                        count=origin["turns"],
                    )
                )
            )
    else:
        typer.echo(
            ngettext(
                "Made from {number} reply in your chats",
                "Made from {number} replies in your chats",
                len(record.lineage),
            )
        )
    settings = {name: value for name, value in recipe.items() if name not in NO_SETTINGS}
    if settings:
        typer.echo(_("Recipe: {settings}", settings=harmless(json.dumps(settings, ensure_ascii=False))))
    for hint in recipe.get("hints", ()):
        typer.echo("  " + _("wish: {hint}", hint=short(str(hint))))
    found = Path(record.gguf_path).with_name("gate.md")
    if record.gguf_path and found.is_file():
        typer.echo("")
        report(found.read_text("utf-8", "replace"))
    elif origin.get("gate"):
        typer.echo(harmless(_("The gate where it was made: {reason}", reason=origin["gate"].get("reason", ""))))
        typer.echo(_("Ask the gate here: claw-local adapters check {id}", id=record.id))


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
        rows.append((_("size of its update"), *(f"{norm:.3f}" for norm in found.norms)))
    print_table(rows)
    typer.echo(
        _(
            "Replies that made them: {one} only {first}, {other} only {second}, {both} both",
            one=found.turns[0],
            first=names[0],
            other=found.turns[1],
            second=names[1],
            both=found.turns[2],
        )
    )
    for side, hint in found.hints:
        only = names[0] if side == "first" else names[1]
        typer.echo("  " + _("only {adapter} was trained with the wish: {hint}", adapter=only, hint=short(hint)))
    if not found.same_base:
        typer.echo(_("They are for different base models, so their weights cannot be compared."))
        return
    typer.echo(
        _(
            "Distance of their updates: {distance:.3f}; alike in direction: {cosine:+.3f}",
            distance=found.distance,
            cosine=found.cosine,
        )
    )
    for layer in found.layers:
        typer.echo(
            "  "
            + _(
                "block {block} {module}: {distance:.3f} apart, direction {cosine:+.3f}",
                block=layer.block,
                module=layer.module,
                distance=layer.distance,
                cosine=layer.cosine,
            )
        )


def _value(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
