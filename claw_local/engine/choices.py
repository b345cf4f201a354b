"""Pieces of grammars (GBNF): one of several texts, whole numbers between two others. It must never know of schemas."""

from __future__ import annotations

from collections.abc import Iterable

DIGITS = 16
"""Of a whole number: more would not come through programs that count in floating point."""
LARGEST = 10**DIGITS - 1


def literal(text: str) -> str:
    """A text as it stands."""
    for raw, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(raw, written)
    return f'"{text}"'


def one_of(texts: Iterable[str]) -> str:
    """One of these texts. What several begin with is written once: so few ways on are open at any time."""
    return _one_of(sorted(set(texts)))


def _one_of(texts: list[str]) -> str:
    first, last = texts[0], texts[-1]  # In order: what these two begin with, all begin with.
    same = next((n for n in range(min(len(first), len(last))) if first[n] != last[n]), min(len(first), len(last)))
    begin = first[:same]
    rests = [text[len(begin) :] for text in texts]
    if len(rests) == 1:
        return literal(begin)
    groups: dict[str, list[str]] = {}
    for rest in rests:
        groups.setdefault(rest[:1], []).append(rest)
    ways = " | ".join(_one_of(group) for group in groups.values())
    return f"{literal(begin)} ({ways})" if begin else f"({ways})"


def whole_numbers(low: int | None, high: int | None) -> str | None:
    """Whole numbers from `low` to `high`, both included, of `DIGITS` digits at most; None if there are none."""
    low, high = max(-LARGEST, -LARGEST if low is None else low), min(LARGEST, LARGEST if high is None else high)
    if low > high:
        return None
    ways = []
    if low < 0:
        ways.append(f'"-" ({_positive(max(1, -high), -low)})')
    if high >= 0:
        ways.append(_positive(max(0, low), high))
    return " | ".join(ways)


def _positive(low: int, high: int) -> str:
    ways, first = [], len(str(low))
    for digits in range(first, len(str(high)) + 1):
        begin = str(low) if digits == first else "1" + "0" * (digits - 1)
        end = str(high) if digits == len(str(high)) else "9" * digits
        ways.append(_digits(begin, end))
    return " | ".join(ways)


def _digits(low: str, high: str) -> str:
    """Numbers of as many digits, written with them all."""
    if low == high:
        return literal(low)
    rest = len(low) - 1
    if low[0] == high[0]:
        return f"{literal(low[0])} ({_digits(low[1:], high[1:])})"
    first, last, ways = int(low[0]), int(high[0]), []
    if low[1:] != "0" * rest:
        ways.append(f"{literal(low[0])} ({_digits(low[1:], '9' * rest)})")
        first += 1
    above = high[1:] != "9" * rest
    last -= 1 if above else 0
    if first <= last:
        ways.append(f"[{first}-{last}]" + (f" [0-9]{{{rest}}}" if rest else ""))
    if above:
        ways.append(f"{literal(high[0])} ({_digits('0' * rest, high[1:])})")
    return " | ".join(ways)
