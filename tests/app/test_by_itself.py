"""Learning by itself while the app is open. What runs is a script; the keeper, the store and the clock are real."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from claw_app.app import ClawApp
from claw_app.screens import by_itself
from claw_app.widgets.learn_bar import LearnBar
from claw_local.idle import records
from claw_local.idle.job import LearningPaused, LearnResult, Progress
from claw_local.idle.keeper import Keeper
from claw_local.idle.learning import Learning
from claw_local.idle.probes import Reading, Readings, unknown
from claw_local.idle.surroundings import Surroundings
from claw_local.store import Run, Store
from tests.app.driving import Until, said
from tests.idle.simulated import add_lesson, add_message

RESULT = LearnResult(
    adapter=3, accepted=True, reason="It follows your hints better.", samples=12, steps=8, seconds=61.2
)


class Quiet:
    """A machine that nobody uses."""

    def desktop_idle_s(self) -> Reading[float]:
        return unknown("no desktop")

    def read(self, run_pid: int | None) -> Readings:
        nothing: Reading[float] = unknown("nobody tells")
        return Readings(nothing, Reading(True), nothing, nothing, nothing)


class Runs:
    """Stands in for the trainer: a job that claims its place in the store, then waits to be let go or to leave."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.began = self.left = 0
        self.by: list[str] = []

        def start(learn: Learning, started_by: Any = "idle") -> ScriptedJob:
            return ScriptedJob(self, learn._store, started_by)

        monkeypatch.setattr(Learning, "start", start)
        monkeypatch.setattr(Surroundings, "_lacking", lambda _: "")
        monkeypatch.setattr(Learning, "keeper", lambda learn: Keeper(learn._assistant, probes=Quiet(), poll_s=0.2))


class ScriptedJob:
    """One run."""

    def __init__(self, runs: Runs, store: Store, started_by: Any) -> None:
        self.runs, self.store = runs, store
        self.run_id = store.runs.begin(started_by)
        store.runs.progress(self.run_id, "training", 0.5, "step 4 of 8")
        runs.began += 1
        runs.by.append(started_by)

    def follow(
        self,
        on_progress: Callable[[Progress], None] | None = None,
        cancel: threading.Event | None = None,
        leave: threading.Event | None = None,
    ) -> Run:
        while not self.runs.go.wait(0.02):
            asked = [event for event in (cancel, leave) if event is not None and event.is_set()]
            if asked or self.store.runs.get(self.run_id).asked:
                self.runs.left += 1
                self.store.runs.finish(self.run_id, "stopped", result={})
                raise LearningPaused("It left.")
        self.store.runs.finish(self.run_id, "done", result=asdict(RESULT))
        return self.store.runs.get(self.run_id)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, scripted: Any) -> Iterator[Runs]:
    """Everything but the person's absence is there for a run to begin."""
    made = Runs(monkeypatch)
    scripted.settings.idle.min_lessons = 1
    scripted.learn.on()
    add_lesson(scripted.store, add_message(scripted.store))
    yield made
    made.go.set()


def long_ago(scripted: Any) -> None:
    """The last message and key were an hour ago."""
    stamp = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="microseconds")
    with scripted.store.database.write() as db:
        db.execute("update messages set created_at = ?", [stamp])
    scripted.store.flags.set("idle.activity", "")


async def test_nothing_begins_while_somebody_is_there(app: ClawApp, scripted: Any, runs: Runs, until: Until) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await pilot.pause(0.8)
        assert runs.began == 0
        keeper = app.watch_over._keeper
        assert keeper is not None and keeper.state == "waiting"
        assert [one.name for one in keeper.conditions if not one.met] == ["away"]


async def test_a_run_that_began_by_itself_is_shown_and_leaves_at_the_first_key(
    app: ClawApp, scripted: Any, runs: Runs, until: Until
) -> None:
    long_ago(scripted)
    async with app.run_test() as pilot:
        await until(pilot, lambda: runs.began == 1)
        assert runs.by == ["idle"]
        bar = app.main.query_one(LearnBar)
        await until(pilot, lambda: bar.display)
        assert "step 4 of 8" in str(bar.query_one("#phase").render())
        assert "leaves at a key" in str(bar.query_one("#learn-stop").render())
        await pilot.press("h")
        await until(pilot, lambda: runs.left == 1, 1.0)
        assert app.main.composer.text == "h"
        await until(pilot, lambda: not bar.display)
        await pilot.pause(0.5)
        assert runs.began == 1, "it does not begin again while somebody is there"


async def test_what_it_learned_is_told_when_somebody_is_back(
    app: ClawApp, scripted: Any, runs: Runs, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_itself, "HERE_S", 0.0)
    long_ago(scripted)
    async with app.run_test() as pilot:
        await until(pilot, lambda: runs.began == 1)
        runs.go.set()
        await until(pilot, lambda: records.news(scripted.store))
        await pilot.pause(1.0)
        assert "adapter 3" not in said(app), "nobody would see it"
        monkeypatch.setattr(by_itself, "HERE_S", 60.0)
        await pilot.press("h")
        await until(pilot, lambda: "While you were away, adapter 3 was learned" in said(app))
        assert "It follows your hints better." in said(app)
        assert records.news(scripted.store) == ""


async def test_f5_takes_the_place_of_a_run_that_began_by_itself(
    app: ClawApp, scripted: Any, runs: Runs, until: Until
) -> None:
    long_ago(scripted)
    async with app.run_test() as pilot:
        await until(pilot, lambda: runs.began == 1 and app.main.query_one(LearnBar).display)
        await pilot.press("f5")
        await until(pilot, lambda: runs.by == ["idle", "person"])
        assert runs.left == 1
        runs.go.set()
        await until(pilot, lambda: "Adapter 3 is in use" in said(app))


async def test_slash_learn_pause_resume_and_status(app: ClawApp, scripted: Any, runs: Runs, until: Until) -> None:
    long_ago(scripted)
    scripted.store.runs.begin("idle")  # So that none begins while this test types.
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")

        async def command(words: str) -> None:
            app.main.composer.text = words
            await pilot.press("enter")

        await command("/learn pause")
        await until(pilot, lambda: "Nothing is learned by itself until /learn resume" in said(app))
        assert records.held(scripted.store, datetime.now(UTC)) is not None
        await command("/learn resume")
        await until(pilot, lambda: "It may learn by itself again" in said(app))
        assert records.held(scripted.store, datetime.now(UTC)) is None
        scripted.store.runs.bury()
        await command("/learn status")
        await until(pilot, lambda: any("run that began by itself" in str(n.render()) for n in app.main.query("Notice")))
        await command("/learn badly")
        await until(pilot, lambda: "status, pause or resume" in said(app))


async def test_leaving_the_app_lets_the_run_leave_and_asks_nothing(
    app: ClawApp, scripted: Any, runs: Runs, until: Until
) -> None:
    long_ago(scripted)
    async with app.run_test() as pilot:
        await until(pilot, lambda: runs.began == 1)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: runs.left == 1, 2.0)
        assert app.leaving


async def test_no_thread_of_the_app_stays_once_it_is_left(app: ClawApp, until: Until) -> None:
    before = set(threading.enumerate())
    async with app.run_test() as pilot:
        await until(pilot, lambda: {"app-quick", "idle-keeper"} <= {thread.name for thread in threading.enumerate()})
    end = time.monotonic() + 10.0
    while stay := set(threading.enumerate()) - before:
        assert time.monotonic() < end, stay
        time.sleep(0.02)
