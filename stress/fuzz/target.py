"""One reader that is fed damaged input. It must never know how the input was damaged."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .mutate import damaged


@dataclass(frozen=True)
class Target:
    """A reader under test.

    Attributes:
        name: of its kind.
        read: gives it the bytes. What may come of bad input it swallows; whatever it raises is a failure.
        seeds: good input, to begin with.
        words: what the format is made of.
        make: makes the input of one try; None damages a seed's bytes.
        slowest_s: a try that takes longer is a failure.
        weight: how many of a run's tries it gets, beside others.
    """

    name: str
    read: Callable[[bytes], object]
    seeds: Sequence[bytes]
    words: Sequence[bytes] = ()
    make: Callable[[random.Random], bytes] | None = None
    slowest_s: float = 2.0
    weight: float = 1.0

    def input(self, chance: random.Random) -> bytes:
        """The input of one try."""
        if self.make is not None and chance.random() < 0.7:
            return self.make(chance)
        return damaged(chance.choice(self.seeds), chance, self.words)
