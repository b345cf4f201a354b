"""What a value that was refused should have been, in plain words. It must never import what checks values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .language import N_, _

_KINDS = {
    "float": N_("a number"),
    "finite": N_("a number"),
    "int": N_("a whole number"),
    "bool": N_("true or false"),
    "string": N_("text"),
    "list": N_("a list"),
    "tuple": N_("a list"),
    "dict": N_("a table"),
    "model": N_("a table"),
}
_BOUNDS = {
    "greater_than_equal": ("ge", N_("a number from {bound:g}")),
    "greater_than": ("gt", N_("a number above {bound:g}")),
    "less_than_equal": ("le", N_("a number up to {bound:g}")),
    "less_than": ("lt", N_("a number below {bound:g}")),
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
        name, words = _BOUNDS[kind]
        return _(words, bound=context[name])
    if kind == "literal_error":
        return _("one of {choices}", choices=context["expected"])
    return _(_KINDS.get(kind.partition("_")[0], ""))


def said(problem: Mapping[str, Any]) -> str:
    """What is wrong, to follow a colon."""
    if problem["type"] == "extra_forbidden":
        return _("there is no such setting")
    takes = wanted(problem)
    return own_words(problem) or (_("it takes {allowed}", allowed=takes) if takes else str(problem["msg"]))
