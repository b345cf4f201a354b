"""Calls read out of what a model writes, as it comes: words go on, calls are kept whole. It must never run one."""

from __future__ import annotations

import json
from typing import Any, Literal

from .calling import Form

LONGEST = 100_000
"""Characters after which what began like a call is taken for words."""
_JSON = json.JSONDecoder()


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
        # Nothing ends a JSON value but one of these: until it comes, a long call is not read again and again.
        if self._state == "call" and not any(mark in text for mark in "]}") and len(self._held) <= LONGEST:
            return ""
        return self._read(last=False)

    def finish(self) -> str:
        """What was held back and is no call."""
        words = self._read(last=True)
        rest, self._held = self._held, ""
        if self._state == "call":
            return words + self._gap + self._opens + rest
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
            if len(text) <= LONGEST and (not text or text[0] in "{["):
                return None
            return self._no_call(len(self._held))
        try:
            found = _calls(value)
        except RecursionError:  # Brackets without end: no call looks like that.
            found = None
        if found is None:
            return self._no_call(len(self._held) - len(text) + end)
        self.calls += found
        self._held, self._state, self._fresh = text[end:], "after", True
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


def _calls(value: Any) -> list[tuple[str, str]] | None:
    """The calls in a JSON value; None if it is none."""
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


def _overlap(text: str, mark: str) -> int:
    """How many characters at the end of a text may be the beginning of a mark."""
    return next((size for size in range(min(len(mark) - 1, len(text)), 0, -1) if mark.startswith(text[-size:])), 0)
