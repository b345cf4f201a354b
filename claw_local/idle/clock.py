"""The two clocks: one that people read, and one that never jumps. It must never know what is timed."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Protocol

JUMP_S = 30.0
"""A difference between the two clocks that is more than their drift, in seconds."""


class Clock(Protocol):
    """Whoever tells the time; in tests a simulated one."""

    def steady(self) -> float:
        """Seconds since some moment. Never goes back and never jumps, but may stand still while the machine sleeps."""

    def wall(self) -> datetime:
        """The time of day here, aware of its zone. May be set forwards and backwards at any moment."""


class SystemClock:
    """The clocks of this machine."""

    def steady(self) -> float:
        return time.monotonic()

    def wall(self) -> datetime:
        return datetime.now().astimezone()


class Ticks:
    """What has passed between two looks at the clocks.

    The steady clock counts where the two disagree backwards: someone set the clock. Where the wall clock has run ahead,
    the machine has slept (or someone set the clock, which nobody can tell from it): somebody woke it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._steady, self._wall = clock.steady(), clock.wall()

    def passed(self) -> tuple[float, bool]:
        """Seconds since the last call, by the steady clock, and whether the machine seems to have slept meanwhile."""
        steady, wall = self._clock.steady(), self._clock.wall()
        seconds = max(0.0, steady - self._steady)
        slept = (wall - self._wall).total_seconds() - seconds > JUMP_S
        self._steady, self._wall = steady, wall
        return seconds, slept
