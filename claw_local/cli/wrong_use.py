"""What the parser says about a value that an option cannot have, in plain words."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ..invalid import said, wanted
from ..language import _
from .common import harmless, short


def say_plainly(error: Any) -> None:
    """Put a plain sentence into an error of the parser, where that only passes on what a library said."""
    problems = getattr(error.__cause__, "errors", None)
    if not callable(problems) or not hasattr(error, "message"):
        return
    problem = problems()[0]
    takes = _choices(error.param) or _range(error.param) or wanted(problem)
    given = short(repr(problem.get("input")))
    error.message = (
        _("it takes {takes}, not {given}.", takes=takes, given=given)
        if takes
        else f"{harmless(said(problem)).rstrip('.')}."
    )


def _annotation(option: Any) -> Any:
    return getattr(getattr(option, "type_descriptor", None), "annotation", None)


def _choices(option: Any) -> str:
    kind = _annotation(option)
    if not (isinstance(kind, type) and issubclass(kind, Enum)):
        return ""
    *others, last = [str(one.value) for one in kind]
    return _("{names} or {last}", names=", ".join(others), last=last) if others else last


def _range(option: Any) -> str:
    kind = _annotation(option)
    if kind not in (int, float):
        return ""
    low, high = (_bound(getattr(option, name, None)) for name in ("min", "max"))
    if kind is int:
        if low and high:
            return _("a whole number from {low} to {high}", low=low, high=high)
        return _("a whole number from {low}", low=low) if low else _("a whole number")
    if low and high:
        return _("a number from {low} to {high}", low=low, high=high)
    return _("a number from {low}", low=low) if low else _("a number")


def _bound(number: float | None) -> str:
    if number is None:
        return ""
    return f"{number:g}" if isinstance(number, float) else str(number)
