"""Parts of hand-written pages that are made from the program: put where a page says `<!-- name -->`."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from . import house
from .commands import _safe

_TEXTS = ("foreground", "quiet", "primary", "secondary", "accent", "success", "warning", "error")
_GROUNDS = ("background", "surface", "panel")


def app_keys() -> str:
    """The app's keys and slash commands, by group."""
    from claw_app.commands import GROUPS, key_names

    lines = []
    for group, commands in GROUPS.items():
        lines += [f"### {group}", "", "| key | command | |", "|---|---|---|"]
        for command in commands:
            words = f" {command.words}" if command.words else ""
            lines.append(f"| {_safe(key_names(command))} | `/{command.slash}{words}` | {_safe(command.help)} |")
        lines.append("")
    return "\n".join(lines)


def plain() -> str:
    """The commands of the plain chat."""
    from claw_local.cli.plain import COMMANDS

    return "\n".join(
        ["| command | |", "|---|---|", *(f"| `/{name}` | {_safe(about)} |" for name, about in COMMANDS.items())]
    )


def contrast() -> str:
    """Least contrast of each theme's texts over its grounds (WCAG 2.2, 1.4.3)."""
    from claw_app.themes import OURS

    lines = ["| theme | least contrast of a text |", "|---|---|"]
    for theme in OURS:
        texts = [theme.variables["quiet"] if text == "quiet" else getattr(theme, text) for text in _TEXTS]
        least = min(ratio(text, getattr(theme, ground)) for text in texts for ground in _GROUNDS)
        lines.append(f"| {theme.name} | {least:.1f} to 1 |")
    return "\n".join(lines)


def ratio(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    shares = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def schema() -> str:
    """The tables of a new database, without those that full-text search keeps for itself."""
    from claw_local.paths import locate
    from claw_local.store import Store

    with tempfile.TemporaryDirectory() as folder:
        store = Store(locate(Path(folder) / "home"))
        try:
            with store.database.write() as db:
                tables = {
                    table: db.execute(f"pragma table_info([{table}])").fetchall()
                    for (table,) in db.execute("select name from sqlite_master where type = 'table' order by rowid")
                }
        finally:
            store.close()
    own = {name: columns for name, columns in tables.items() if not re.search(r"fts|_search|^search|^sqlite_|^_", name)}
    lines = []
    for name, columns in own.items():
        told = ", ".join(f"`{column[1]}` {column[2].lower()}{' (key)' if column[5] else ''}" for column in columns)
        lines.append(f"- **{name}**: {told}")
    return "\n".join(lines)


MARKERS: dict[str, Callable[[], str]] = {
    "map": house.drawn,
    "parts": house.listed,
    "keys": app_keys,
    "plain": plain,
    "contrast": contrast,
    "schema": schema,
}


def fill(page: str) -> str:
    """A page with what its markers stand for. Raises ValueError: there is no such part."""

    def part(found: re.Match[str]) -> str:
        if found[1] not in MARKERS:
            raise ValueError(f"no part of a page is called {found[1]}")
        return MARKERS[found[1]]()

    return re.sub(r"^<!-- (\w+) -->$", part, page, flags=re.MULTILINE)
