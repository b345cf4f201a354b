"""Damage: bytes changed as files get damaged, and as somebody who wants to break a reader would change them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

INTERESTING = (0, 1, 2, 3, 4, 7, 8, 31, 32, 127, 128, 255, 256, 1 << 15, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 63)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    1 << 31,
    1 << 63,
    1 << 64,
    10**400,
    0.5,
    1e308,
    -0.0,
    "",
    "a",
    "\0",
    "\ud800",
    "é",
    "\u202e",
    "../../x",
    "\x1b]0;x\x07",
    "9" * 5000,
    [],
    {},
    [[]],
    {"": None},
)


def damaged(data: bytes, chance: random.Random, words: Sequence[bytes] = ()) -> bytes:
    """A few changes of bytes.

    Args:
        words: what the format is made of, to be put in here and there.
    """
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        way = chance.randrange(9)
        at = chance.randrange(len(out) + 1)
        if way == 0 and out:
            out[at % len(out)] ^= 1 << chance.randrange(8)
        elif way == 1 and out:
            out[at % len(out)] = chance.randrange(256)
        elif way == 2:
            width = chance.choice((1, 2, 4, 8))
            number = chance.choice(INTERESTING) & ((1 << 8 * width) - 1)
            out[at : at + width] = number.to_bytes(width, "little")
        elif way == 3:
            del out[at : at + chance.choice((1, 1, 2, 4, 8, 16, 64))]
        elif way == 4:
            out[at:at] = chance.randbytes(chance.choice((1, 2, 4, 8, 16)))
        elif way == 5 and out:
            start = chance.randrange(len(out))
            out[at:at] = out[start : start + chance.choice((1, 4, 16, 64, 256))]
        elif way == 6 and words:
            out[at:at] = chance.choice(words)
        elif way == 7 and words:
            word = chance.choice(words)
            out[at : at + len(word)] = word
        elif way == 8 and chance.randrange(4) == 0:
            del out[at:]
    return bytes(out)


def damaged_json(value: Any, chance: random.Random) -> Any:
    """A JSON value with a few of its parts replaced, removed, doubled or put deeper."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        value = _changed(value, chance, 0)
    return value


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _changed(value: Any, chance: random.Random, depth: int) -> Any:
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        copy = dict(value)
        way = chance.randrange(8)
        if way == 0:
            del copy[key]
        elif way == 1:
            copy[chance.choice(("x", "", "id", "role", "content", "name", "type"))] = copy.pop(key)
        else:
            copy[key] = _changed(value[key], chance, depth + 1)
        return copy
    if isinstance(value, list) and value and chance.random() < 0.85:
        copy_of = list(value)
        at = chance.randrange(len(copy_of))
        way = chance.randrange(8)
        if way == 0:
            del copy_of[at]
        elif way == 1:
            copy_of.insert(at, copy_of[chance.randrange(len(copy_of))])
        elif way == 2:
            copy_of *= chance.choice((0, 2, 3))
        else:
            copy_of[at] = _changed(copy_of[at], chance, depth + 1)
        return copy_of
    way = chance.randrange(12)
    if way == 0:
        return _deep(value, chance.choice((5, 50, 70, 150, 300)), chance)
    if way == 1 and isinstance(value, str):
        return value * chance.choice((0, 2, 100))
    return chance.choice(VALUES)


def _deep(value: Any, depth: int, chance: random.Random) -> Any:
    wrap: Callable[[Any], Any] = (lambda inner: [inner]) if chance.random() < 0.5 else (lambda inner: {"a": inner})
    for _ in range(depth):
        value = wrap(value)
    return value
