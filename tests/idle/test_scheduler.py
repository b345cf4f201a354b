"""The scheduler against a simulated clock, person and machine: two programs over one store, whatever happens."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from datetime import date, timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from claw_local.idle import records
from claw_local.idle.ending import LearningPaused
from claw_local.idle.failures import waits_for_person
from claw_local.idle.scheduler import Scheduler
from claw_local.paths import locate
from claw_local.settings import IdleSettings
from claw_local.store import Store
from claw_local.store.database import now
from tests.idle.simulated import Clock, SimulatedMachine, SimulatedWorld, add_lesson, add_message, home_of

TICK_S = 20.0
IDLE = IdleSettings(min_lessons=1, away_minutes=1, desktop_minutes=1, daily_minutes=5, hours="06:00-23:00")


@functools.cache
def fresh_database() -> Path:
    """An empty store's file, made once: making one takes longer than a whole example."""
    folder = Path(tempfile.mkdtemp(prefix="claw-local-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    Store(locate(folder)).close()
    return folder / "claw-local.db"


class TwoPrograms(RuleBasedStateMachine):
    """The app and the timer's program, each with its own scheduler, over one store."""

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        shutil.copy(fresh_database(), Path(self.folder.name) / "claw-local.db")
        self.clock = Clock()
        self.machine = SimulatedMachine(self.clock)
        self.home = home_of(locate(Path(self.folder.name)), IDLE)
        self.store = self.home.store
        self.worlds = [SimulatedWorld(self.home, self.clock, self.machine) for _ in range(2)]
        self.schedulers = [Scheduler(world) for world in self.worlds]
        self.typed_at = self.clock.steady()
        self.used: dict[date, float] = {}
        self.set_back = False
        self.by_hand: int | None = None
        self.reply = add_message(self.store)
        self.tick()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()

    def jobs(self) -> list[object]:
        return [job for world in self.worlds for job in world.jobs if job.lives]

    def tick(self) -> None:
        for scheduler in self.schedulers:
            scheduler.tick()
        self.check()
        for world in self.worlds:
            for job in world.jobs[-1:]:
                job.has_left()

    def check(self) -> None:
        """What must hold at the end of every tick."""
        running = [one for one in self.schedulers if one.state == "running" and self.jobs()]
        assert len(self.jobs()) <= 1, "two jobs at once"
        if self.by_hand is not None:
            assert not self.jobs(), "beside a run of the person's"
        if not running:
            return
        assert self.machine.mains, "on battery"
        assert self.clock.steady() - self.typed_at >= IDLE.away_minutes * 60, "while somebody types"
        moved = self.machine.moved_at
        assert moved is None or self.clock.steady() - moved >= IDLE.desktop_minutes * 60, "while somebody is there"
        assert self.machine.load is None or self.machine.load <= IDLE.max_load
        assert self.home.learn.enabled
        assert records.held(self.store, self.clock.wall()) is None
        assert 6 <= self.clock.wall().hour < 23
        today = self.clock.wall().date()
        assert self.set_back or self.used.get(today, 0.0) <= IDLE.daily_minutes * 60 + TICK_S, "more than a day's time"

    @rule()
    def a_quiet_while(self) -> None:
        """Nothing stands in the way for some time: then it does learn, unless the day's time or the hours forbid it."""
        self.machine.mains, self.machine.load, self.machine.moved_at = True, 0.0, None
        self.home.learn.enabled = True
        records.release(self.store)
        self.tick()  # It sees how the last run ended, and begins to rest if that went wrong.
        self.store.flags.set(records.REST, "")
        if self.by_hand is not None:
            self.and_it_ends()
        add_lesson(self.store, self.reply)
        self.time_passes(5)
        wall = self.clock.wall()
        spent = records.used_s(self.store, wall.date()) >= IDLE.daily_minutes * 60
        allowed = 6 <= wall.hour < 23 and not (wall.hour == 6 and wall.minute < 3)
        assert self.jobs() or spent or not allowed or waits_for_person(self.store), [
            one.words for one in self.schedulers[0].conditions if not one.met
        ]

    @rule(
        what=st.sampled_from(
            ["battery", "unknown power", "mouse", "load", "held", "off", "typing", "sleep", "evening", "time"]
        )
    )
    def something_comes_between(self, what: str) -> None:
        """A run goes on, and then one thing is no longer so."""
        if what == "evening":
            self.clock.time = self.clock.time.replace(hour=22, minute=57)
            self.set_back = True
        self.a_quiet_while()
        if what == "battery":
            self.the_plug(False)
        elif what == "unknown power":
            self.the_plug(None)
        elif what == "mouse":
            self.the_mouse_moves(True)
        elif what == "load":
            self.others_compute(0.9)
        elif what == "held":
            self.hold(1)
        elif what == "off":
            self.learning(False)
        elif what == "typing":
            self.somebody_types(False)
        elif what == "sleep":
            self.the_laptop_sleeps_and_is_woken(2.0)
        else:  # The allowed hours end, or the day's time.
            self.time_passes(17)

    @rule(ticks=st.integers(1, 5))
    def time_passes(self, ticks: int) -> None:
        for _ in range(ticks):
            if self.jobs():
                today = self.clock.wall().date()
                self.used[today] = self.used.get(today, 0.0) + TICK_S
            self.clock.advance(TICK_S)
            self.tick()

    @rule(elsewhere=st.booleans())
    def somebody_types(self, elsewhere: bool) -> None:
        """In the app, or in a program that leaves a message in the store: at the next glance all know."""
        self.typed_at = self.clock.steady()
        if elsewhere:
            with_message = add_message(self.store)
            # The real clock has stamped it; the simulated one is what counts here.
            with self.store.database.write() as db:
                stamp = self.clock.wall().isoformat(timespec="microseconds")
                db.execute("update messages set created_at = ? where id >= ?", [stamp, with_message - 1])
            self.reply = with_message
        else:
            self.worlds[0].touch()
        for world, scheduler in zip(self.worlds, self.schedulers, strict=True):
            assert scheduler.glance(lambda world=world: world.here(desktop=False)) != "running" or not self.jobs()
        self.tick()

    @rule(known=st.booleans())
    def the_mouse_moves(self, known: bool) -> None:
        self.machine.moved_at = self.clock.steady() if known else None
        self.tick()

    @rule(mains=st.sampled_from([True, True, False, None]))
    def the_plug(self, mains: bool | None) -> None:
        self.machine.mains = mains
        self.tick()

    @rule(load=st.sampled_from([0.0, 0.1, 0.9, None]))
    def others_compute(self, load: float | None) -> None:
        self.machine.load = load
        self.tick()

    @rule()
    def a_lesson(self) -> None:
        add_lesson(self.store, self.reply)

    @rule(hours=st.sampled_from([0, 1]))
    def hold(self, hours: int) -> None:
        wall = self.clock.wall()
        records.hold(self.store, wall, wall + timedelta(hours=hours) if hours else None)
        self.tick()

    @rule()
    def release(self) -> None:
        records.release(self.store)

    @rule(on=st.booleans())
    def learning(self, on: bool) -> None:
        self.home.learn.enabled = on
        self.tick()

    @rule(well=st.booleans())
    def the_run_ends(self, well: bool) -> None:
        for job in self.jobs():
            job.end(well=well)  # type: ignore[attr-defined]

    @precondition(lambda self: not self.jobs() and self.by_hand is None)
    @rule()
    def the_person_begins_a_run(self) -> None:
        self.by_hand = self.store.runs.begin("person")

    @precondition(lambda self: self.by_hand is not None)
    @rule()
    def and_it_ends(self) -> None:
        self.store.runs.finish(self.by_hand, "done", result={})
        self.by_hand = None

    @rule(hours=st.floats(-30, 30))
    def somebody_sets_the_clock(self, hours: float) -> None:
        before = self.clock.time
        self.clock.time += timedelta(hours=hours)
        if self.clock.time.date() < before.date():
            self.set_back = True
        self.tick()

    @rule(hours=st.floats(0.1, 30))
    def the_laptop_sleeps_and_is_woken(self, hours: float) -> None:
        self.clock.time += timedelta(hours=hours)
        self.typed_at = self.clock.steady()  # Somebody has opened it.
        self.tick()

    @rule()
    def the_timer_begins_anew(self) -> None:
        if self.schedulers[1].state == "waiting":
            self.worlds[1] = SimulatedWorld(self.home, self.clock, self.machine)
            self.schedulers[1] = Scheduler(self.worlds[1])
            self.tick()

    @invariant()
    def one_run_in_the_store(self) -> None:
        if hasattr(self, "store"):
            with self.store.database.read() as db:
                assert db.table("runs").count_where("state = 'running'") <= 1


TestTwoPrograms = TwoPrograms.TestCase
TestTwoPrograms.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def open_one(tmp_path: Path) -> tuple[Clock, SimulatedMachine, SimulatedWorld, Scheduler]:
    clock = Clock()
    machine = SimulatedMachine(clock)
    world = SimulatedWorld(home_of(locate(tmp_path), IDLE), clock, machine)
    add_lesson(world.assistant.store, add_message(world.assistant.store))
    with world.assistant.store.database.write() as db:
        db.execute("update messages set created_at = ?", [clock.wall().isoformat(timespec="microseconds")])
    return clock, machine, world, Scheduler(world)


def test_it_begins_goes_on_after_the_person_was_there_and_ends_once(tmp_path: Path) -> None:
    """That all the rules above can be kept by never learning anything is no way out."""
    clock, _, world, scheduler = open_one(tmp_path)
    assert scheduler.tick() == "waiting"
    clock.advance(61)
    assert scheduler.tick() == "running"
    world.touch()
    assert scheduler.glance(lambda: world.here(desktop=False)) == "leaving"
    world.jobs[0].has_left()
    assert scheduler.tick() == "waiting"
    clock.advance(61)
    assert scheduler.tick() == "running"
    assert [job.run_id for job in world.jobs] == [1, 1], "it goes on with the run that was left"
    world.jobs[1].end(well=True)
    clock.advance(TICK_S)
    assert scheduler.tick() == "waiting"
    assert "adapter 1" in records.news(world.assistant.store)


def test_it_stays_with_one_try_of_the_same_lessons(tmp_path: Path) -> None:
    clock, _, world, scheduler = open_one(tmp_path)
    store = world.assistant.store
    clock.advance(61)
    scheduler.tick()
    world.jobs[0].end(well=True)
    clock.advance(TICK_S)
    assert scheduler.tick() == "waiting"
    assert "1 new lesson (0 so far, with replies not judged yet)" in [one.words for one in scheduler.conditions]
    add_lesson(store, 2)
    clock.advance(TICK_S)
    assert scheduler.tick() == "running"


def test_after_a_failure_it_rests_and_after_two_alike_it_waits_for_the_person(tmp_path: Path) -> None:
    clock, _, world, scheduler = open_one(tmp_path)
    store = world.assistant.store
    for _ in range(2):
        clock.advance(3700)
        assert scheduler.tick() == "running"
        store.runs.note_failure(world.jobs[-1].run_id, "killed", "it was killed")
        world.jobs[-1].end(well=False)
        clock.advance(TICK_S)
        assert scheduler.tick() == "waiting"
        (waits,) = [one.words for one in scheduler.conditions if one.name == "rest"]
        assert "60 minutes to pass" in waits
    clock.advance(3700)
    assert scheduler.tick() == "waiting"
    assert any("went wrong 2 times in the same way" in one.words for one in scheduler.conditions if not one.met)


def test_a_run_that_the_person_let_leave_elsewhere_needs_no_rest(tmp_path: Path) -> None:
    """`learn pause` asks the run itself to leave, which may be quicker than whoever watches over it."""
    clock, _, world, scheduler = open_one(tmp_path)
    clock.advance(61)
    assert scheduler.tick() == "running"
    job = world.jobs[0]
    job.leave()
    job.has_left()
    job.error = LearningPaused("Learning is paused.")
    records.hold(world.assistant.store, clock.wall())
    clock.advance(TICK_S)
    assert scheduler.tick() == "waiting"
    records.release(world.assistant.store)
    clock.advance(TICK_S)
    assert scheduler.tick() == "running"


def test_a_clock_set_far_back_neither_starts_nor_blocks_it_for_ever(tmp_path: Path) -> None:
    clock, _, _, scheduler = open_one(tmp_path)
    scheduler.tick()
    clock.time -= timedelta(days=4000)
    assert scheduler.tick() == "waiting"
    clock.time = clock.time.replace(hour=12)
    clock.advance(61)
    assert scheduler.tick() == "running"


def test_the_store_s_stamps_and_ours_are_written_alike() -> None:
    """They are compared as text."""
    assert len(now()) == len(Clock().wall().isoformat(timespec="microseconds"))
    assert now().endswith("+00:00")
