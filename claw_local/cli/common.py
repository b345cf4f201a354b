"""What the commands share: printing JSON, and text that is safe on a terminal."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import typer

JSON_OPTION = typer.Option(False, "--json", help="Print one JSON object instead of text.")


def print_json(value: Any) -> None:
    text = json.dumps(plain(value), ensure_ascii=False, indent=2)
    # JSON lets these control characters stand raw; a terminal would act on them.
    typer.echo("".join(c if not "\x7f" <= c <= "\x9f" else f"\\u{ord(c):04x}" for c in text))


def plain(value: Any) -> Any:
    """Records as plain dictionaries."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def harmless(text: str) -> str:
    """Text without control characters, so that nothing a model writes can steer the terminal. Newline and tab stay."""
    return "".join(c for c in text if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f"))


def short(text: str, width: int = 72) -> str:
    line = " ".join(harmless(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"
