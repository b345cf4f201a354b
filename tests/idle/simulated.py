"""A simulated machine and person around the real scheduler and a real store: clock, power, keys, and runs that take no
processor time. What a real run does is tested with the trainer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from claw_local.engine.base import Generation, Sampling
from claw_local.errors import LearnError, NotFoundError
from claw_local.idle import records
from claw_local.idle.job import LearnResult
from claw_local.idle.probes import Reading, Readings, unknown
from claw_local.idle.surroundings import Surroundings
from claw_local.paths import Paths
from claw_local.settings import IdleSettings, Settings
from claw_local.store import Store

RESULT = LearnResult(adapter=1, accepted=True, reason="It is better.", samples=4, steps=4, seconds=60.0)


class Clock:
    """Both clocks, moved by hand."""

    def __init__(self) -> None:
        self.now_s, self.time = 1000.0, datetime(2026, 3, 4, 12, 0, tzinfo=UTC)

    def steady(self) -> float:
        return self.now_s

    def wall(self) -> datetime:
        return self.time

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
        self.time += timedelta(seconds=seconds)


class SimulatedMachine:
    """Probes that answer what they are told to."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.moved_at: float | None = None
        self.mains: bool | None = True
        self.load: float | None = 0.0
        self.temperature: float | None = None

    def desktop_idle_s(self) -> Reading[float]:
        if self.moved_at is None:
            return unknown("no desktop")
        return Reading(self.clock.steady() - self.moved_at)

    def read(self, run_pid: int | None) -> Readings:
        def told(value: Any) -> Reading[Any]:
            return Reading(value) if value is not None else unknown("not told")

        return Readings(
            self.desktop_idle_s(), told(self.mains), told(self.load), told(self.temperature), unknown("no GPU")
        )


class SimulatedJob:
    """A run in the store, without a trainer. It claims its place as a real one does."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.result: LearnResult | None = None
        self.error: BaseException | None = None
        self.asked = self.gone = False
        self.run_id = 0
        paused = store.runs.paused()
        try:
            if paused:
                store.runs.go_on(paused[0].id, "idle")
                self.run_id = paused[0].id
            else:
                self.run_id = store.runs.begin("idle")
                records.remember_began(store, store.samples.newest())  # As `learn.now` does, here and below.
        except LearnError as error:
            self.error = error

    @property
    def lives(self) -> bool:
        try:
            return not self.gone and bool(self.run_id) and self.store.runs.get(self.run_id).state == "running"
        except NotFoundError:
            return False

    def leave(self) -> None:
        self.asked = True

    def over(self) -> bool:
        return not self.lives

    def has_left(self) -> None:
        """What a trainer does within a second of being asked."""
        if self.lives and self.asked:
            self.store.runs.set_checkpoint(self.run_id, "training", 2, 8)
            self.store.runs.pause(self.run_id, "You came back.")
            self.gone = True  # Another program may go on with it.

    def end(self, *, well: bool) -> None:
        if self.lives and well:
            self.store.runs.finish(self.run_id, "done", result={})
            records.remember_tried(self.store)
            self.result = RESULT
        elif self.lives:
            self.store.runs.finish(self.run_id, "failed", result={}, detail="It failed.")
            self.error = LearnError("It failed.")


class SimulatedWorld(Surroundings):
    """The real world but for the runs it begins, and for what learning lacks."""

    def __init__(self, home: SimpleNamespace, clock: Clock, machine: SimulatedMachine) -> None:
        super().__init__(home, clock=clock, probes=machine)  # type: ignore[arg-type]
        self.jobs: list[SimulatedJob] = []

    def start(self) -> SimulatedJob:
        self.jobs.append(SimulatedJob(self.assistant.store))
        return self.jobs[-1]

    def _lacking(self) -> str:
        return ""


def home_of(paths: Paths, idle: IdleSettings) -> SimpleNamespace:
    """As much of an assistant as the scheduler asks for: the store, the settings, and whether learning is on."""
    return SimpleNamespace(
        store=Store(paths), settings=Settings(idle=idle), learn=SimpleNamespace(enabled=True), come_back=lambda: None
    )


def add_message(store: Store) -> int:
    """The person asks something, and is answered; returns the reply."""
    _, _, reply = store.messages.go_on(store.chats.create().id, "What is rain?", learn="yes")
    made = Generation(prompt_ids=(1,), sampling=Sampling())
    made.text, made.response_ids, made.logprobs = "Water.", [5], [-1.0]
    store.messages.finish(reply, made, state="done", timings={})
    return reply


def add_lesson(store: Store, reply: int) -> None:
    """The judge has read what the person said about a reply."""
    store.signals.add(reply, "judge", -1, hint="Use one sentence.")
