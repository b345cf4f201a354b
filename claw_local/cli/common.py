"""What the commands share: printing JSON, and text that is safe on a terminal."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..language import N_
from ..sizes import size as size

if TYPE_CHECKING:
    from ..settings import Settings

CLOSED = N_("Standard output is closed, so there is nowhere to put the answer.")
JSON_OPTION = typer.Option(False, "--json", help="Print one JSON object instead of text.")

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of the text around them, so that it reads as another."""

_NEVER_RAW = re.compile(f"{_STEERING.pattern[:-1]}\ud800-\udfff]")


def print_json(value: Any) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    text = json.dumps(plain(value), ensure_ascii=not encoding.lower().startswith("utf"), indent=2)
    # JSON lets these characters stand raw; a terminal would act on them, and no encoding takes half of one.
    typer.echo(_NEVER_RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def plain(value: Any) -> Any:
    """Records as plain dictionaries."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def harmless(text: str) -> str:
    """Text without control characters, so that nothing a model writes can steer the terminal. Newline and tab stay."""
    return _STEERING.sub("", text)


def short(text: str, width: int = 72) -> str:
    line = " ".join(harmless(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def with_profile(profile: str | None) -> Settings | None:
    """The settings, going by a profile; None where none was named, for whoever reads them anyway."""
    if profile is None:
        return None
    from ..paths import locate
    from ..settings import load

    settings = load(locate())
    settings.adapters.profile = profile
    return settings


def print_table(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> None:
    """Rows in columns, two spaces apart. On a terminal the last column is cut at its width; into a pipe all is written.

    Args:
        rows: all of one length. right: columns set to the right.
    """
    from rich.cells import cell_len, set_cell_size

    cells = [[" ".join(harmless(text).split()) for text in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    room = shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else 0
    for row in cells:
        parts = []
        for place, text in enumerate(row[:-1]):
            gap = " " * (widths[place] - cell_len(text))
            parts.append(gap + text if place in right else text + gap)
        line = "  ".join([*parts, row[-1]]).rstrip()
        if room and cell_len(line) > room:
            line = set_cell_size(line, max(room - 1, 0)).rstrip() + "…"
        typer.echo(line)
