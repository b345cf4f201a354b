"""Hours of the day as a person writes them: "22:00-07:00, 12:30-13:30". It must never know what they are for."""

from __future__ import annotations

import re

DAY = 24 * 60
_SPAN = re.compile(r"(\d{1,2})(?::([0-5]\d))?\s*[-–]\s*(\d{1,2})(?::([0-5]\d))?")

Span = tuple[int, int]
"""From and to, in minutes after midnight; a span whose end is not after its start goes over midnight."""


def parse(text: str) -> tuple[Span, ...]:
    """The spans in a text, none if it is empty.

    Raises:
        ValueError: it is not written like that; the message says how it is.
    """
    spans = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        found = _SPAN.fullmatch(part)
        start = int(found[1]) * 60 + int(found[2] or 0) if found else DAY + 1
        end = int(found[3]) * 60 + int(found[4] or 0) if found else DAY + 1
        if start > DAY or end > DAY:
            raise ValueError('hours are written like "22:00-07:00", several with commas between them')
        spans.append((start % DAY, end % DAY))
    return tuple(spans)


def within(spans: tuple[Span, ...], minute: int) -> bool:
    """Whether a minute of the day is in one of them. No spans means always."""
    return not spans or any((minute - start) % DAY < _length(start, end) for start, end in spans)


def until_next(spans: tuple[Span, ...], minute: int) -> int:
    """Minutes until the next span begins; 0 within one."""
    if within(spans, minute):
        return 0
    return min((start - minute) % DAY for start, _ in spans)


def clock(minute: int) -> str:
    """A minute of the day as a clock shows it: 07:05."""
    return f"{minute % DAY // 60:02d}:{minute % 60:02d}"


def _length(start: int, end: int) -> int:
    return (end - start) % DAY or DAY
