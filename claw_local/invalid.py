"""What a value that was refused should have been, in plain words. It must never import what checks values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KINDS = {
    "float": "a number",
    "finite": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "a table",
    "model": "a table",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "from"),
    "greater_than": ("gt", "above"),
    "less_than_equal": ("le", "up to"),
    "less_than": ("lt", "below"),
}


def own_words(problem: Mapping[str, Any]) -> str:
    """What a check of this program's own said, or a library's, where that raised ValueError; else ""."""
    return str(problem["msg"]).removeprefix("Value error, ") if problem["type"] == "value_error" else ""


def wanted(problem: Mapping[str, Any]) -> str:
    """What it takes, as in "a number from 0"; "" if that cannot be told.

    Args:
        problem: one of the entries of a pydantic error.
    """
    kind, context = str(problem["type"]), problem.get("ctx") or {}
    if kind in _BOUNDS:
        name, word = _BOUNDS[kind]
        return f"a number {word} {context[name]:g}"
    if kind == "literal_error":
        return f"one of {context['expected']}"
    return _KINDS.get(kind.partition("_")[0], "")


def said(problem: Mapping[str, Any]) -> str:
    """What is wrong, to follow a colon."""
    if problem["type"] == "extra_forbidden":
        return "there is no such setting"
    takes = wanted(problem)
    return own_words(problem) or (f"it takes {takes}" if takes else str(problem["msg"]))
