"""What came of it: rates, and which of the gate's checks fired, as a table. It must never decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """False accepts and false rejects over the adapters that were asked about."""
    bad, good = [row for row in rows if not row["good"]], [row for row in rows if row["good"]]
    accepted, rejected = [row for row in bad if row["accepted"]], [row for row in good if not row["accepted"]]
    seconds = [row["seconds"] for row in rows]
    return {
        "bad": len(bad),
        "good": len(good),
        "false_accepts": [row["name"] for row in accepted],
        "false_rejects": [row["name"] for row in rejected],
        "false_accept_rate": len(accepted) / len(bad) if bad else None,
        "false_reject_rate": len(rejected) / len(good) if good else None,
        "seconds_each": sum(seconds) / len(seconds) if seconds else None,
    }


def markdown(whole: Mapping[str, Any]) -> str:
    found = whole["summary"]
    lines = [
        "# Planted adapters",
        "",
        f"    {whole['command']}",
        "",
        f"{whole['model']}, {whole['machine']}.",
        "",
        f"- False accepts: {_rate(len(found['false_accepts']), found['bad'])} bad adapters"
        f"{_named(found['false_accepts'])}",
        f"- False rejects: {_rate(len(found['false_rejects']), found['good'])} good adapters"
        f"{_named(found['false_rejects'])}",
        f"- The gate took {found['seconds_each'] or 0:.0f} s each",
        "",
        "| adapter | wish | gate | s | why |",
        "|---|---|---|---|---|",
    ]
    for row in whole["rows"]:
        right = row["accepted"] == row["good"]
        word = ("taken" if row["accepted"] else "not taken") + ("" if right else " **(wrong)**")
        lines.append(f"| {row['name']} | {row['wish']} | {word} | {row['seconds']:.0f} | {row['reason']} |")
    return "\n".join(lines) + "\n"


def _rate(count: int, of: int) -> str:
    return f"{count} of {of} ({count / of:.0%})" if of else "none of 0"


def _named(names: Sequence[str]) -> str:
    return f": {', '.join(names)}" if names else ""
