"""Who keeps watch, by the real clock: how soon a run leaves, and that watching costs nothing that is felt."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import psutil
import pytest

from claw_local.errors import StoreError
from claw_local.idle import records
from claw_local.idle.keeper import Keeper
from claw_local.idle.surroundings import Surroundings
from claw_local.paths import Paths
from claw_local.settings import IdleSettings
from claw_local.store import Store
from tests.idle.simulated import Clock, SimulatedJob, SimulatedMachine, add_lesson, add_message, home_of

SOON_S = 1.0
"""A run has to be asked to leave so soon."""


class LeavingJob(SimulatedJob):
    """Leaves as soon as it is asked to, and remembers when that was."""

    asked_at = 0.0

    def leave(self) -> None:
        super().leave()
        self.asked_at = time.monotonic()
        self.has_left()


@pytest.fixture
def home_(home: Paths) -> Iterator[SimpleNamespace]:
    """A home in which a run may begin at once."""
    opened = home_of(home, IdleSettings(min_lessons=1, away_minutes=0.5))
    add_lesson(opened.store, add_message(opened.store))
    stamp = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="microseconds")
    with opened.store.database.write() as db:
        db.execute("update messages set created_at = ?", [stamp])
    yield opened
    opened.store.close()


@pytest.fixture
def jobs(home_: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> list[LeavingJob]:
    begun: list[LeavingJob] = []

    def start(world: Surroundings) -> LeavingJob:
        begun.append(LeavingJob(world.assistant.store))
        return begun[-1]

    monkeypatch.setattr(Surroundings, "start", start)
    monkeypatch.setattr(Surroundings, "_lacking", lambda _: "")
    return begun


@pytest.fixture
def machine() -> SimulatedMachine:
    return SimulatedMachine(Clock())


def once(
    home: SimpleNamespace, machine: SimulatedMachine, jobs: list[LeavingJob]
) -> tuple[threading.Event, threading.Thread]:
    """The timer's program, in a thread; returns when its run has begun."""
    stop, keeper = threading.Event(), Keeper(home, probes=machine)  # type: ignore[arg-type]
    thread = threading.Thread(target=keeper.once, args=[stop])
    thread.start()
    end = time.monotonic() + 5
    while not jobs:
        assert time.monotonic() < end, keeper.conditions
        time.sleep(0.01)
    time.sleep(0.3)
    assert not jobs[0].asked
    return stop, thread


def test_a_message_in_another_program_lets_it_leave(
    home: Paths, home_: SimpleNamespace, machine: SimulatedMachine, jobs: list[LeavingJob]
) -> None:
    _, thread = once(home_, machine, jobs)
    other = Store(home)
    began = time.monotonic()
    add_message(other)
    thread.join(5)
    assert jobs[0].asked_at - began < SOON_S
    assert other.runs.get(jobs[0].run_id).state == "paused"
    other.close()


@pytest.mark.parametrize("what", ["stop", "held", "off", "mouse"])
def test_so_does_whatever_else_wants_it_to(
    what: str, home_: SimpleNamespace, machine: SimulatedMachine, jobs: list[LeavingJob]
) -> None:
    stop, thread = once(home_, machine, jobs)
    began = time.monotonic()
    if what == "stop":
        stop.set()
    elif what == "held":
        records.hold(home_.store, datetime.now(UTC))
    elif what == "off":
        home_.learn.enabled = False
    else:
        machine.moved_at = machine.clock.steady()
    thread.join(5)
    assert jobs[0].asked_at - began < SOON_S
    assert len(jobs) == 1, "the timer's program ends then"


def test_a_store_that_cannot_be_read_lets_it_leave(
    home_: SimpleNamespace, machine: SimulatedMachine, jobs: list[LeavingJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, thread = once(home_, machine, jobs)

    def full(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(Surroundings, "used", full)
    thread.join(5)
    assert jobs[0].asked and not thread.is_alive()


def test_a_key_lets_it_leave_at_once_and_other_programs_see_it(
    home: Paths, home_: SimpleNamespace, machine: SimulatedMachine, jobs: list[LeavingJob]
) -> None:
    keeper = Keeper(home_, probes=machine, poll_s=0.2)  # type: ignore[arg-type]
    keeper.begin()
    end = time.monotonic() + 5
    while not jobs and time.monotonic() < end:
        time.sleep(0.01)
    began = time.monotonic()
    keeper.touch()
    while not jobs[0].asked and time.monotonic() < end:
        time.sleep(0.001)
    assert jobs[0].asked_at - began < 0.5
    assert keeper.make_room()
    other = Store(home)
    seen = datetime.fromisoformat(json.loads(other.flags.get("idle.activity"))[0])
    assert (datetime.now(UTC) - seen).total_seconds() < 5
    other.close()
    keeper.close()


def test_watching_costs_nothing_that_is_felt(home_: SimpleNamespace, machine: SimulatedMachine) -> None:
    home_.learn.enabled = False
    keeper = Keeper(home_, probes=machine, poll_s=10.0)  # type: ignore[arg-type]
    keeper.begin()
    time.sleep(0.5)
    me = psutil.Process()
    before, began = sum(me.cpu_times()[:2]), time.monotonic()
    for _ in range(300):  # Somebody types quickly.
        keeper.touch()
        time.sleep(0.005)
    used = sum(me.cpu_times()[:2]) - before
    assert used < 0.1 * (time.monotonic() - began)
    keeper.close()


def test_closed_before_it_begins_it_does_not_watch(home_: SimpleNamespace, machine: SimulatedMachine) -> None:
    before = threading.active_count()
    keeper = Keeper(home_, probes=machine, poll_s=10.0)  # type: ignore[arg-type]
    keeper.close()
    keeper.begin()
    assert threading.active_count() == before
