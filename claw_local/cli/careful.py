"""What every command does with values that were given but say nothing, as from a variable that is not set; and how what
was typed is said back. It must never know what a value is for.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import typer
from typer.core import TyperCommand

from ..errors import UsageError
from ..language import _
from ..named_text import shown

_SPEAKS = frozenset(
    {
        *("question", "text", "title", "value", "hint", "system", "stop", "reply"),
        *("containing", "verdict", "state", "allow", "deny", "span", "since"),
    }
)
"""Values that are a person's words, or whose own sentence says what they may be."""
_MEANT = frozenset({("rename", "name")})
"""Where nothing has a meaning of its own."""


class Careful(TyperCommand):
    """A command that refuses a file, a name or a choice that is empty or blank: exit status 2, one sentence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing and any(map(_may_be_blank, args)):
            given, _rest, _order = self.make_parser(ctx).parse_args(args=list(args))
            for param in self.get_params(ctx):
                if _counts(ctx, param) and _is_blank(given.get(param.name)):
                    raise UsageError(_said(param))
        return super().parse_args(ctx, args)


def make_careful(app: typer.Typer) -> None:
    """Make all commands of an app, and of the groups in it, such commands."""
    for command in app.registered_commands:
        if not issubclass(command.cls or TyperCommand, Careful):
            command.cls = Careful
    for group in app.registered_groups:
        if group.typer_instance is not None:
            make_careful(group.typer_instance)


def on_one_line(text: str, typed: Iterable[str]) -> str:
    """A sentence in which what was typed with line breaks or other controls is shown like \\n."""
    for word in typed:
        for part in (word, word.partition("=")[2]):
            if part.strip() and not part.isprintable():
                text = text.replace(part, shown(part))
    return text


def _may_be_blank(word: str) -> bool:
    """Whether a word of the command line is blank, or what it gives an option."""
    return not (word.partition("=")[2] if word.startswith("--") and "=" in word else word).strip()


def _counts(ctx: Any, param: Any) -> bool:
    kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    if kind in (int, float, list[int]) or (isinstance(kind, type) and issubclass(kind, Enum)):
        return False
    return param.name not in _SPEAKS and (ctx.info_name, param.name) not in _MEANT


def _is_blank(given: Any) -> bool:
    words = [given] if isinstance(given, str) else given if isinstance(given, (list, tuple)) else ()
    return bool(words) and all(isinstance(word, str) and not word.strip() for word in words)


def _said(param: Any) -> str:
    if param.param_type_name == "option":
        return _("{option} was given with nothing in it. Give it a value, or leave it out.", option=param.opts[0])
    name = str(param.name).upper()
    return _("{argument} was given with nothing in it. Say which one is meant.", argument=name)
