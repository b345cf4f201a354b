"""How many threads to compute with: a core that is busy with something else makes all others wait at every step.

llama.cpp's threads meet after each operation, hundreds of times a token. With two cores and one other busy program, two
threads were ten times slower than one. It must never know what is computed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

PARAMETERS_PER_THREAD = 150_000_000
"""A single token of a small model is so little work that a second thread costs more in meetings than it computes. With
a LoRA on every layer, which doubles the operations, two threads were three times slower than one (135M, two cores)."""
LOOK_S = 0.25
"""Seconds between two looks at what other programs use."""


def usable_cores() -> int:
    """Physical cores that this process may use: more threads than that slow llama.cpp down."""
    import psutil

    physical = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(1, min(physical, allowed))


def cpu_seconds_of_others() -> float:
    """CPU seconds that all other programs have used so far on this machine."""
    import psutil

    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "steal", 0.0)
    # `user` holds the guests' time already.
    every = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    own = os.times()
    return float(every - idle - own.user - own.system)


class FixedThreads:
    """As many as the person set."""

    def __init__(self, count: int) -> None:
        self._count = count

    def now(self) -> int:
        return self._count

    def for_one_token(self, parameters: int) -> int:
        return self._count


class FreeThreads:
    """One for each core that others leave free, at least one and at most `most`.

    Args:
        cores: logical cores of the machine.
        others: CPU seconds used by other programs so far.
        clock: seconds.
    """

    def __init__(
        self,
        most: int,
        *,
        cores: int | None = None,
        others: Callable[[], float] = cpu_seconds_of_others,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = self._count = most
        self._cores = cores or os.cpu_count() or most
        self._others = others
        self._clock = clock
        self._seen = (clock(), others())

    def now(self) -> int:
        then, used = self._seen
        passed = self._clock() - then
        if self._most > 1 and passed >= LOOK_S:
            seen = self._others()
            busy = max(0.0, seen - used) / passed
            self._count = max(1, min(self._most, int(self._cores - busy + 0.5)))
            self._seen = (self._clock(), seen)
        return self._count

    def for_one_token(self, parameters: int) -> int:
        return min(self._count, max(1, round(parameters / PARAMETERS_PER_THREAD)))
