"""The commands as the program knows them, and the page that lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_KINDS = {"int": "N", "int range": "N", "float": "X", "float range": "X", "str": "TEXT", "path": "PATH", "file": "FILE"}


@dataclass(frozen=True)
class Command:
    """One command, as its `--help` tells it.

    Attributes:
        name: all words, "claw-local adapters use". usage: what follows them.
        about: paragraphs of what it does.
        arguments, options: pairs of what is written and what it means; without `--help`, which all have.
        parts: the commands in it, for a group.
    """

    name: str
    usage: str
    about: str
    arguments: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]
    parts: tuple[Command, ...]

    def walk(self) -> Iterator[Command]:
        """Itself and all in it, in the order of `--help`."""
        yield self
        for part in self.parts:
            yield from part.walk()


def read() -> Command:
    """All commands, but for hidden ones."""
    import typer

    from claw_local.cli.main import app

    return _read(typer.main.get_command(app), "claw-local", None)


def _read(command: Any, name: str, parent: Any) -> Command:
    # Wide, so that no usage is broken into lines.
    context = command.context_class(command, info_name=name.split()[-1], parent=parent, terminal_width=10_000)
    context.max_content_width = 10_000
    arguments, options = [], []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or "--help" in record[0]:
            continue
        pair = (_told(record[0]), " ".join(record[1].split()))
        (arguments if parameter.param_type_name == "argument" else options).append(pair)
    parts = tuple(
        _read(part, f"{name} {word}", context)
        for word, part in getattr(command, "commands", {}).items()
        if not part.hidden
    )
    usage = " ".join(command.collect_usage_pieces(context))
    return Command(name, usage, (command.help or "").strip(), tuple(arguments), tuple(options), parts)


def _told(written: str) -> str:
    """`--chat <int>` as people write it: `--chat N`. An argument's kind says nothing beside its name."""

    def kind(found: re.Match[str]) -> str:
        word = found[1].removeprefix("list[").removesuffix("]")
        return _KINDS.get(word, word.upper().replace(" ", "-"))

    if not written.startswith("-"):
        return re.sub(r"\s*<[^>]*>", "", written)
    return re.sub(r"<([^>]*)>", kind, written)


def as_markdown(root: Command) -> str:
    """The page of all commands."""
    lines = ["# Commands", "", root.about, ""]
    lines += [
        "Each takes `--help`; those that list or show something take `--json`. Exit status: 0 done, 1 it could not be"
    ]
    lines += ["done, 2 it was put wrongly, 130 stopped with Ctrl-C. This page is made from the program.", ""]
    lines += ["Options before every command:", "", *_table(root.options), ""]
    for command in list(root.walk())[1:]:
        deep = command.name.count(" ") + 1
        lines += [f"{'#' * deep} {command.name}", ""]
        lines += [_safe(paragraph.replace("\n", " ")) + "\n" for paragraph in command.about.split("\n\n")]
        if command.options or not command.parts:
            lines += ["```text", f"{command.name} {command.usage}".rstrip(), "```", ""]
        lines += [*_table(command.arguments + command.options), ""] if command.arguments or command.options else []
    return "\n".join(lines)


def _table(rows: tuple[tuple[str, str], ...]) -> list[str]:
    return ["| | |", "|---|---|", *(f"| `{name}` | {_safe(about)} |" for name, about in rows)]


def _safe(text: str) -> str:
    """Text in which nothing is taken for Markdown or HTML but code in backticks."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # A backtick without another one.
        return _escaped(text).replace("`", "\\`")
    return "".join(f"`{part}`" if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_{}\[\]>|#])", r"\\\1", text.replace("&", "&amp;")).replace("<", "&lt;")
