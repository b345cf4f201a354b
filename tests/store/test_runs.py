"""The table of runs: one at a time, left and gone on with, and what is left of a process that died."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from claw_local.errors import LearnError
from claw_local.idle.ending import error_of
from claw_local.paths import Paths
from claw_local.store import Store


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


def orphan(store: Store, *, checkpoint: bool) -> int:
    """A run whose process has ended without a word."""
    run_id = store.runs.begin()
    store.runs.progress(run_id, "practising", 0.3, "step 3 of 8")
    if checkpoint:
        store.runs.set_checkpoint(run_id, "practising", 2, 8)
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    with store.database.write() as db:
        db.table("runs").update(run_id, {"process": f"{ended.stdout.strip()}:1.00"})
    return run_id


def test_a_run_that_died_is_paused_where_it_can_go_on_and_failed_where_not(store: Store) -> None:
    first = orphan(store, checkpoint=False)
    store.runs.bury()
    assert store.runs.get(first).state == "failed"
    second = orphan(store, checkpoint=True)
    store.runs.bury()
    run = store.runs.get(second)
    assert (run.state, run.where) == ("paused", "step 3 of 8")
    assert "goes on from step 3 of 8" in run.detail
    (failure,) = run.failures
    assert (failure.kind, failure.phase, failure.step) == ("died", "practising", 2)
    store.runs.bury()
    assert len(store.runs.get(second).failures) == 1


@pytest.mark.parametrize(("asked", "begins"), [("leave", "It was left, and"), ("", "Its process ended")])
def test_a_run_left_before_anything_was_trained_begins_anew(store: Store, asked: str, begins: str) -> None:
    run_id = store.runs.begin()
    store.runs.set_checkpoint(run_id, "start", 0, 8)
    if asked == "leave":
        store.runs.ask(run_id, "leave")
    assert store.runs.died(run_id, "died", "its process ended")
    run = store.runs.get(run_id)
    assert (run.state, run.begins_anew) == ("paused", True)
    assert run.detail.startswith(begins) and run.detail.endswith("begins anew at the next run.")
    assert "from the beginning" not in run.detail and "from the beginning" not in str(
        error_of(run, Path(), failed=False)
    )


def test_a_run_left_while_it_draws_its_first_answers_goes_on_with_them(store: Store) -> None:
    run_id = store.runs.begin()
    store.runs.set_checkpoint(run_id, "planned", 0, 8)
    store.runs.ask(run_id, "leave")
    assert store.runs.died(run_id, "died", "its process ended")
    run = store.runs.get(run_id)
    assert (run.state, run.begins_anew, run.where) == ("paused", False, "step 1 of 8")
    assert run.detail == "It was left, and goes on from step 1 of 8."
    assert "goes on from step 1 of 8" in str(error_of(run, Path(), failed=False))


@pytest.mark.skipif(sys.platform != "linux", reason="starts of the machine have a number on Linux")
def test_a_machine_that_was_switched_off_is_no_failure_of_the_run(store: Store) -> None:
    run_id = orphan(store, checkpoint=True)
    with store.database.write() as db:
        db.table("runs").update(run_id, {"process": "1:1@another"})
    store.runs.bury()
    run = store.runs.get(run_id)
    assert (run.state, run.failures) == ("paused", ())


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the start of a process is a time of day for good")
def test_setting_the_clock_ends_no_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = store.runs.begin()
    monkeypatch.setattr(psutil, "boot_time", lambda: 2e9)
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: 2e9)
    store.runs.bury()
    assert store.runs.get(run_id).state == "running"
    with pytest.raises(LearnError, match="already going on"):
        store.runs.begin()


def test_only_one_run_at_a_time_also_when_one_goes_on(store: Store) -> None:
    first = store.runs.begin()
    store.runs.set_checkpoint(first, "gate", 8, 8)
    store.runs.pause(first, "You came back.")
    second = store.runs.begin("idle")
    with pytest.raises(LearnError, match="already going on"):
        store.runs.go_on(first)
    store.runs.finish(second, "failed", result={})
    store.runs.go_on(first)
    with pytest.raises(LearnError, match="already going on"):
        store.runs.begin()
    with pytest.raises(LearnError, match="already going on"):
        store.runs.go_on(first)
    assert store.runs.get(first).where == "the gate"
    store.runs.finish(first, "done", result={})
    assert store.runs.get(first).where == ""
    with pytest.raises(LearnError, match="not paused"):
        store.runs.go_on(first)
    assert store.runs.get(second).started_by == "idle"
