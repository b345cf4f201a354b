"""When a run begins by itself, when it has to leave, and when it goes on: a small machine with one job at most.

It must never measure anything nor know how learning works: the world around it does that, and in tests a simulated one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from ..settings import IdleSettings
from .clock import Clock, Ticks
from .conditions import Condition, Facts, of_facts, of_machine, unmet
from .job import LearnResult
from .probes import Readings

State = Literal["waiting", "running", "leaving"]
LONGEST_TICK_S = 60.0
"""No more than this is counted of the time between two looks: the rest the machine slept."""


class Job(Protocol):
    """A run that goes on.

    Attributes:
        result: how it ended; None if it did not come to its end.
        error: what went wrong, if something did.
    """

    result: LearnResult | None
    error: BaseException | None

    def leave(self) -> None:
        """Ask it to stop computing at once and to keep what it has. Returns without waiting; again is harmless."""

    def over(self) -> bool:
        """Whether it has ended, and its process is gone."""


class World(Protocol):
    """What the scheduler acts in."""

    clock: Clock
    settings: IdleSettings

    def facts(self, *, running: bool) -> Facts: ...
    def readings(self, *, running: bool) -> Readings: ...
    def touch(self) -> None:
        """Somebody is here, whoever noticed it."""

    def start(self) -> Job:
        """Begin a run, or go on with the one that was left."""

    def used(self, seconds: float) -> None:
        """A run of ours took so long."""

    def ended(self, job: Job, *, left: bool) -> None:
        """A run is over; `left`: it was asked to leave."""


class Scheduler:
    """Call `tick()` again and again, and `glance()` more often while it runs. One thread at a time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ticks = Ticks(world.clock)
        self._job: Job | None = None
        self._left = False
        self.conditions: tuple[Condition, ...] = ()
        """As found at the last tick. While something is waited for that needs no measuring, nothing was measured."""

    @property
    def state(self) -> State:
        if self._job is None:
            return "waiting"
        return "leaving" if self._left else "running"

    def tick(self, *, begin: bool = True) -> State:
        """Look at everything once: let the run that goes on leave if a condition does not hold; where none goes on,
        and unless not `begin`, begin one if all hold."""
        self._time_passes()
        running = self._job is not None
        world = self._world
        found = of_facts(world.settings, world.facts(running=running), world.clock.wall(), running=running)
        if not unmet(found):
            found += of_machine(world.settings, world.readings(running=running), running=running)
        self.conditions = found
        if unmet(found):
            self.leave()
        elif self._job is None and begin:
            self._left = False
            self._job = world.start()
        return self.state

    def glance(self, here: Callable[[], bool]) -> State:
        """Whether a run that goes on may go on, as far as `here` tells: true as soon as somebody is there."""
        self._time_passes()
        if self._job is not None and here():
            self.leave()
        return self.state

    def leave(self) -> None:
        """Let the run that goes on leave, if one does."""
        if self._job is not None and not self._left:
            self._left = True
            self._job.leave()

    def _time_passes(self) -> None:
        seconds, slept = self._ticks.passed()
        if slept:
            self._world.touch()  # Somebody woke the machine.
        job = self._job
        if job is None:
            return
        if job.over():
            self._job = None  # First of all: whatever the store says, it is over.
        try:
            self._world.used(min(seconds, LONGEST_TICK_S))
        finally:
            if self._job is None:
                self._world.ended(job, left=self._left)
