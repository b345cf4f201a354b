"""A sandbox for templates of downloaded files that also bounds what they take: steps, time, and the size of any value.

Jinja's own sandbox keeps a template from reaching Python. It lets it loop for hours, or fill the memory with one
expression ('a' * 10**10). Here each pass of a loop and each call is counted, and what can make something large out of
something small is measured before it is made. It must never know what a chat is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sized
from typing import Any

from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_STEPS = 400_000
"""Passes of loops, and calls. A template takes a few for each message of a chat."""
LONGEST = 32 << 20
"""Characters of a text."""
MOST_PARTS = 1 << 20
"""Of a list."""
LARGEST_NUMBER_BITS = 4096
MOST_SECONDS = 2.0
_WIDEST = 10_000
"""Of a number that says how wide a text is to be made, or how many parts something is to be cut into."""
_WIDTH = re.compile(r"\d{5,}")
_NESTED = re.compile(r"\{[^{}]*\{")
_WIDTHS = ("indent", "center", "batch", "slice", "wordwrap", "truncate", "tojson", "round", "filesizeformat")
_REMOVED = ("format", "pprint", "urlize", "xmlattr", "random")
"""Filters that no chat template needs, and that make much of little."""


class TooMuch(Exception):
    """The template takes more than it may."""


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Begin each rendering with `begin()`. One rendering at a time in a thread is the caller's to see to."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._steps = 0
        self._end = 0.0
        for name in _REMOVED:
            self.filters.pop(name, None)
        self.globals.pop("lipsum", None)
        for name in _WIDTHS:
            self.filters[name] = _narrow(self.filters[name])
        self.filters["replace"] = self._replaced(self.filters["replace"])
        self.filters["join"] = self._joined
        self.begin()

    def begin(self) -> None:
        """Count anew."""
        self._steps = MOST_STEPS
        self._end = time.monotonic() + MOST_SECONDS

    def step(self) -> str:
        """One pass of a loop, or one call of a macro."""
        self._steps -= 1
        if self._steps < 0 or (self._steps % 64 == 0 and time.monotonic() > self._end):
            raise TooMuch("it loops for too long")
        return ""

    def whole(self, *parts: Any) -> str:
        """The texts, one behind the other (`~`)."""
        texts = [str(part) for part in parts]
        _fits(sum(map(len, texts)))
        return "".join(texts)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        bodies = [node.body for node in tree.find_all(nodes.For)]
        bodies += [node.body for node in tree.find_all(nodes.Macro)]
        bodies += [node.body for node in tree.find_all(nodes.CallBlock)]
        for body in bodies:
            counted = nodes.Call(nodes.EnvironmentAttribute("step"), [], [], None, None)
            body.insert(0, nodes.Output([counted]))
        for concat in list(tree.find_all(nodes.Concat)):
            # In place: the node becomes a call of `whole` with the same parts.
            call = nodes.Call(nodes.EnvironmentAttribute("whole"), concat.nodes, [], None, None)
            _become(concat, call)
        tree.set_environment(self)
        return tree

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        self.step()
        if operator == "+" and isinstance(left, Sized) and isinstance(right, Sized):
            _fits(len(left) + len(right), left)
        elif operator == "*":
            _check_product(left, right)
        elif operator == "**":
            if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
                raise TooMuch("it raises to a power what is no number")
            if isinstance(left, int) and left.bit_length() * abs(right) > LARGEST_NUMBER_BITS:
                raise TooMuch("it makes too large a number")
        elif operator == "%" and isinstance(left, str):
            _check_widths(left, "*")
        return super().call_binop(context, operator, left, right)

    def call(self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        # Jinja puts a method of its own around `str.format`.
        method = getattr(__obj, "__wrapped__", __obj)
        owner = getattr(method, "__self__", None)
        if owner is not self:
            self.step()
            if isinstance(owner, (str, bytes)):
                _check_method(owner, getattr(method, "__name__", ""), args)
        result = super().call(__context, __obj, *args, **kwargs)
        if isinstance(result, (str, bytes, list, tuple, dict)):
            _fits(len(result), result)
        return result

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """What is written out, as one text."""
        texts: list[str] = []
        size = 0
        for part in parts:
            size += len(part)
            _fits(size)
            texts.append(part)
        return "".join(texts)

    def _replaced(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        def replaced(context: Any, text: Any, old: Any, new: Any, count: Any = None) -> Any:
            _check_replace(str(text), str(old), str(new))
            return otherwise(context, text, old, new, count)

        _pass_on(otherwise, replaced)
        return replaced

    def _joined(self, values: Iterable[Any], between: Any = "", attribute: Any = None) -> str:
        parts = list(values)
        if attribute is not None:
            parts = [self.getitem(part, attribute) for part in parts]
        texts = [str(part) for part in parts]
        _fits(sum(map(len, texts)) + len(str(between)) * len(texts))
        return str(between).join(texts)


def _become(node: nodes.Node, other: nodes.Node) -> None:
    object.__setattr__(node, "__class__", other.__class__)
    for name in other.fields:
        setattr(node, name, getattr(other, name))


def _narrow(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that takes no number that is too large."""

    def narrow(*values: Any, **named: Any) -> Any:
        for value in (*values[1:], *named.values()):
            size = len(value) if isinstance(value, str) else abs(value) if isinstance(value, (int, float)) else 0
            if size > _WIDEST:
                raise TooMuch("it makes a text too wide")
        return otherwise(*values, **named)

    _pass_on(otherwise, narrow)
    return narrow


def _pass_on(from_: Callable[..., Any], to: Callable[..., Any]) -> None:
    """How Jinja calls a filter holds for the one around it too."""
    for name in ("jinja_pass_arg", "jinja_async_variant"):
        if hasattr(from_, name):
            setattr(to, name, getattr(from_, name))


def _fits(size: int, what: Any = "") -> None:
    if size > (LONGEST if isinstance(what, (str, bytes)) else MOST_PARTS):
        raise TooMuch("it makes a text or a list too long")


def _check_widths(text: str | bytes, nested: str) -> None:
    """A pattern that is filled in must not say how wide with a large number, nor with one that comes from elsewhere."""
    said = text if isinstance(text, str) else text.decode("latin-1")
    if _WIDTH.search(said) or (nested == "*" and "*" in said) or (nested == "{" and _NESTED.search(said)):
        raise TooMuch("it makes a text too wide")


def _check_product(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > LARGEST_NUMBER_BITS:
            raise TooMuch("it makes too large a number")
    elif isinstance(left, int) and isinstance(right, Sized):
        _fits(max(left, 0) * len(right), right)
    elif isinstance(right, int) and isinstance(left, Sized):
        _fits(max(right, 0) * len(left), left)


def _check_method(owner: str | bytes, name: str, args: tuple[Any, ...]) -> None:
    if any(isinstance(value, int) and abs(value) > _WIDEST for value in args) and name in (
        "ljust",
        "rjust",
        "center",
        "zfill",
        "expandtabs",
    ):
        raise TooMuch("it makes a text too wide")
    if name == "replace" and len(args) >= 2:
        _check_replace(owner, args[0], args[1])
    elif name == "join" and args:
        if not isinstance(args[0], (list, tuple, str)):
            raise TooMuch("it joins what is no list")
        _fits(sum(len(part) if isinstance(part, str) else 1 for part in args[0]) + len(owner) * len(args[0]))
    elif name in ("format", "format_map"):
        _check_widths(owner, "{")
    elif name == "translate":
        raise TooMuch("it translates letters, which no chat template needs")


def _check_replace(text: Any, old: Any, new: Any) -> None:
    if all(isinstance(value, (str, bytes)) for value in (text, old, new)):
        times = len(text) + 1 if not old else len(text) // len(old)
        _fits(len(text) + times * len(new))
