"""Calls read out of what a model writes: as it comes (`CallReader`), where words go on and calls are kept whole, or out
of what stands between two marks (`read_calls`), in whatever form its template taught it. It must never run one.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, Literal

from .tool_forms import Form

LONGEST = 16_000_000
"""Characters after which what began like a call is taken for words."""
OFTEN = 100_000
"""Characters up to which a call is looked for at each bracket; of a longer one only at what closes it."""
LEAST_MARK = 6
"""Characters of an opening mark that were written when the text was cut off, from which on they are no words."""
_JSON = json.JSONDecoder()
_LENIENT = json.JSONDecoder(strict=False)
_MISTRAL_NAMED = re.compile(r"([\w.-]+)\s*(?:\[ARGS\])?\s*(\{.*)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)\s*>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)\s*>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)

Called = tuple[str, Any]
"""A call as it was written: its name, "" if it has none, and its arguments, which should be an object."""


class CallReader:
    """Tells words from calls. What looks like a call and is none comes out as words.

    Attributes:
        calls: the whole calls so far, as (name, arguments as JSON text). One of a tool that there is not is a call too:
            whoever runs tools says so.
    """

    def __init__(self, form: Form) -> None:
        self.calls: list[tuple[str, str]] = []
        self._opens, self._closes, self._listed = form.opens, form.closes, form.listed
        self._held = self._gap = ""
        self._state: Literal["words", "call", "after"] = "words"
        self._fresh = True
        """Only white space came since the beginning, or since a call."""

    def push(self, text: str) -> str:
        """The words that are certain now."""
        self._held += text
        # Nothing ends a call but one of these: until it comes, a long one is not read again and again.
        if self._state == "call" and len(self._held) <= LONGEST:
            if not any(mark in text for mark in "]}>"):
                return ""
            closed = bool(self._closes) and self._closes in self._held[-len(text) - len(self._closes) :]
            if len(self._held) > OFTEN and not closed:
                return ""
        return self._read(last=False)

    def finish(self, *, cut: bool = False) -> str:
        """What was held back and is no call.

        Args:
            cut: the text was cut off, by its greatest length say: then a call that had begun is no words either.
        """
        if cut and self._opens and self._state == "words":
            self._held = self._held[: len(self._held) - _overlap(self._held, self._opens, LEAST_MARK)]
        words = self._read(last=True)
        rest, self._held = self._held, ""
        if self._state == "call":
            return words if cut and self._opens else words + self._gap + self._opens + rest
        return words + (rest if rest.strip() or not self.calls else "")

    def _read(self, *, last: bool) -> str:
        words = ""
        while True:
            step = {"words": self._words, "call": self._call, "after": self._after}[self._state](last)
            if step is None:
                return words
            words += step

    def _words(self, last: bool) -> str | None:
        """Words until a call opens; None if more has to come."""
        stripped = self._held.lstrip()
        if not stripped:
            return None
        if not self._opens:
            if self._fresh and stripped[0] in "{[":
                self._held, self._state = stripped, "call"
                return ""
            return self._give(len(self._held))
        place = self._held.find(self._opens)
        if place >= 0:
            before, self._held = self._held[:place], self._held[place + len(self._opens) :]
            self._state = "call"
            self._gap = before[len(before.rstrip()) :]
            return before.rstrip()
        keep = 0 if last else _overlap(self._held, self._opens)
        body = self._held[: len(self._held) - keep].rstrip() if not last else self._held
        return self._give(len(body)) if body else None

    def _call(self, last: bool) -> str | None:
        """A whole call; None if more has to come."""
        text = self._held.lstrip()
        try:
            value, end = _JSON.raw_decode(text)
        except (ValueError, RecursionError):
            return self._other_call(text, last)
        try:
            found = _calls(value)
        except RecursionError:  # Brackets without end: no call looks like that.
            found = None
        if found is None:
            return self._no_call(len(self._held) - len(text) + end)
        return self._found(found, text[end:])

    def _other_call(self, text: str, last: bool) -> str | None:
        """A call that is no whole JSON, read once its closing mark is there."""
        end = text.find(self._closes) if self._closes else -1
        if end >= 0 and (found := _whole(read_calls(text[:end]))):
            return self._found(found, text[end:])
        if end < 0 and len(text) <= LONGEST and (self._closes or not text or text[0] in "{["):
            return None
        return self._no_call(len(self._held) if end < 0 else len(self._held) - len(text) + end)

    def _found(self, calls: list[tuple[str, str]], rest: str) -> str:
        self.calls += calls
        self._held, self._state, self._fresh = rest, "after", True
        return ""

    def _after(self, last: bool) -> str | None:
        """Past what closes a call; None if more has to come."""
        self._held = self._held.lstrip(" \n\r\t;,") if not self._closes else self._held.lstrip()
        if self._held.startswith(self._closes):
            self._held = self._held.removeprefix(self._closes)
        elif not last and self._closes.startswith(self._held):
            return None
        self._state = "words"
        return ""

    def _no_call(self, end: int) -> str:
        self._state = "words"
        return self._gap + self._opens + self._give(end)

    def _give(self, end: int) -> str:
        words, self._held = self._held[:end], self._held[end:]
        if self._fresh and self.calls:
            words = words.lstrip()
        self._fresh = False
        return words


def read_calls(body: str) -> list[Called]:
    """The calls that stand between two marks, as well as they can be read; none if that is not at all."""
    body = body.strip()
    if functions := _FUNCTION.findall(body):
        return [(name, {key: _value(text) for key, text in _PARAMETER.findall(inner)}) for name, inner in functions]
    if found := objects(body):
        return [called(one) for one in found]
    named = _MISTRAL_NAMED.match(body)
    if named and (arguments := objects(named[2])):
        return [(named[1], arguments[0])]
    return []


def called(said: dict[str, Any]) -> Called:
    """The call in a JSON object; arguments are {} where it names none, and read where they are JSON in a text."""
    inner = said.get("function")
    said = inner if isinstance(inner, dict) else said
    name, arguments = said.get("name", inner), said.get("arguments", said.get("parameters", {}))
    if isinstance(arguments, str):
        found = objects(arguments)
        arguments = found[0] if found else None
    return (name.strip()[:200] if isinstance(name, str) else "", arguments)


def objects(text: str) -> list[dict[str, Any]]:
    """The JSON objects a text consists of: one, an array of them, or one after the other. Empty if it is no such."""
    text = text.strip()
    found: list[dict[str, Any]] = []
    try:
        while text:
            value, end = _LENIENT.raw_decode(text)
            found += value if isinstance(value, list) else [value]
            text = text[end:].lstrip(" \t\r\n,;")
    except (ValueError, RecursionError):
        if not found:
            mended = _mended(text)
            found = mended if isinstance(mended, list) else [mended]
    return found if found and all(isinstance(one, dict) for one in found) else []


def _mended(text: str) -> Any:
    """What small models make of JSON: trailing commas, Python's quotes, a brace forgotten at the end."""
    for tried in (re.sub(r",\s*([}\]])", r"\1", text), text + "}", text + "}}"):
        try:
            return json.loads(tried, strict=False)
        except (ValueError, RecursionError):
            pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _value(text: str) -> Any:
    """A parameter of the XML form: JSON where it is a number, a list or the like, else the text as it stands."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, str) else value


def _whole(calls: list[Called]) -> list[tuple[str, str]]:
    """Calls with their arguments as JSON; none if one of them is not whole."""
    if not all(name and isinstance(arguments, dict) for name, arguments in calls):
        return []
    return [(name, json.dumps(arguments, ensure_ascii=False, default=str)) for name, arguments in calls]


def _calls(value: Any) -> list[tuple[str, str]] | None:
    """The calls in a JSON value; None if it is none. Arguments that are a text stay as they are."""
    if isinstance(value, list):
        found = [call for part in value for call in _calls(part) or [("", "")]]
        return found if found and all(name for name, _ in found) else None
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = value.get("name")
    arguments = value.get("arguments", value.get("parameters"))
    if not isinstance(name, str) or not name or not isinstance(arguments, (dict, str)):
        return None
    return [(name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))]


def _overlap(text: str, mark: str, least: int = 1) -> int:
    """How many characters at the end of a text, `least` at least, may be the beginning of a mark."""
    sizes = range(min(len(mark) - 1, len(text)), least - 1, -1)
    return next((size for size in sizes if mark.startswith(text[-size:])), 0)
