"""The words around a hit, with the hits in them. It must never know where the text comes from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from unicodedata import combining

from ..store.words import fold

LENGTH = 160
_BEFORE = 50
_CHUNK = 4096
_OVERLAP = 256

Marks = tuple[tuple[int, int], ...]


def snippet(text: str, found: re.Pattern[str]) -> tuple[str, Marks]:
    """The part of a text around the first hit, on one line, and where in it the hits are: (start, end).

    `found`: what to look for in folded text (`store.words.pattern`).
    """
    place = _first(text, found)
    start = max(0, place - _BEFORE)
    if start:
        # Not in the middle of a word, if there is a gap near by.
        gap = re.compile(r"\s").search(text, start, place)
        start = gap.end() if gap is not None else start
    end = min(len(text), start + LENGTH)
    line = " ".join(text[start:end].split())
    folded = fold(line)
    hits = [(hit.start(), hit.end()) for hit in found.finditer(folded) if hit.end() > hit.start()]
    if not _keeps_places(line):
        places = _places(line)
        hits = [(places[begin][0], places[end - 1][1]) for begin, end in hits]
    before, after = "… " if start else "", " …" if end < len(text) else ""
    shift = len(before)
    return before + line + after, tuple((begin + shift, end + shift) for begin, end in hits)


def _first(text: str, found: re.Pattern[str]) -> int:
    """Where the first hit begins. A long text is folded piece by piece."""
    for start in range(0, len(text), _CHUNK):
        piece = text[start : start + _CHUNK + _OVERLAP]
        folded = fold(piece)
        hit = found.search(folded)
        if hit is not None:
            # Folding can change lengths: the longest beginning that folds to no more than what is before the hit.
            same = len(folded) == len(piece)
            place = hit.start() if same else bisect_right(range(len(piece)), hit.start(), key=_length_of(piece)) - 1
            return start + max(0, place)
    return 0


def _length_of(piece: str) -> Callable[[int], int]:
    return lambda end: len(fold(piece[:end]))


def _keeps_places(text: str) -> bool:
    """Whether each character folds to one character, so that places in the folded text are those in the text."""
    return text.isascii() or not any(_changes_places(character) for character in set(text))


def _places(text: str) -> list[tuple[int, int]]:
    """Which part of the text each character of the folded text stands for: (start, end)."""
    places: list[tuple[int, int]] = []
    start = 0
    while start < len(text):
        # A character folds together with the accents that follow it.
        end = start + 1
        while end < len(text) and _goes_along(text[end]):
            end += 1
        places += [(start, end)] * len(fold(text[start:end]))
        start = end
    return places


@lru_cache(maxsize=4096)
def _changes_places(character: str) -> bool:
    return _goes_along(character) or len(fold(character)) != 1


@lru_cache(maxsize=4096)
def _goes_along(character: str) -> bool:
    return not character.isascii() and (combining(character) != 0 or not fold(character))
