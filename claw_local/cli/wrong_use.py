"""What the parser says about a value that an option cannot have, in plain words."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ..invalid import said, wanted
from .common import harmless, short


def say_plainly(error: Any) -> None:
    """Put a plain sentence into an error of the parser, where that only passes on what a library said."""
    problems = getattr(error.__cause__, "errors", None)
    if not callable(problems) or not hasattr(error, "message"):
        return
    problem = problems()[0]
    takes = _choices(error.param) or _range(error.param) or wanted(problem)
    given = short(repr(problem.get("input")))
    error.message = f"it takes {takes}, not {given}." if takes else f"{harmless(said(problem)).rstrip('.')}."


def _annotation(option: Any) -> Any:
    return getattr(getattr(option, "type_descriptor", None), "annotation", None)


def _choices(option: Any) -> str:
    kind = _annotation(option)
    if not (isinstance(kind, type) and issubclass(kind, Enum)):
        return ""
    *others, last = [str(one.value) for one in kind]
    return f"{', '.join(others)} or {last}" if others else last


def _range(option: Any) -> str:
    kind = _annotation(option)
    if kind not in (int, float):
        return ""
    words = ["a whole number" if kind is int else "a number"]
    for name, word in (("min", "from"), ("max", "to")):
        bound = getattr(option, name, None)
        if bound is not None:
            words.append(f"{word} {bound:g}" if isinstance(bound, float) else f"{word} {bound}")
    return " ".join(words)
