"""What a run that goes wrong leaves in the store: failed, or paused where it can go on."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local.errors import AdapterError, EngineError, LearnError, StoreError
from claw_local.paths import HOME_VARIABLE, Paths
from claw_local.store import Run, Store
from claw_trainer.__main__ import _failed, _left
from claw_trainer.leaving import LEFT
from claw_trainer.plan import NothingNew


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


def after(store: Store, error: Exception, phase: str = "practising", step: int = 2) -> Run:
    run_id = store.runs.begin()
    store.runs.set_checkpoint(run_id, phase, step, 8)
    assert _failed(store, run_id, error) == 1
    return store.runs.get(run_id)


def full() -> list[Exception]:
    plain = OSError(errno.ENOSPC, "No space left on device")
    adapter, database = AdapterError("Cannot write the adapter."), StoreError("The database cannot be written.")
    adapter.__cause__ = plain
    database.__cause__ = sqlite3.OperationalError("database or disk is full")
    return [plain, adapter, database]


@pytest.mark.parametrize("number", range(3))
def test_a_full_disk_is_known_wherever_it_is_met_and_the_run_goes_on_later(store: Store, number: int) -> None:
    run = after(store, full()[number], "start", 0)
    assert (run.state, run.failures[0].kind, run.where) == ("paused", "DiskFull", "the beginning")
    assert run.detail.endswith("It begins anew at the next run.")


def test_what_would_go_wrong_again_ends_the_run_and_anything_else_lets_it_go_on(store: Store) -> None:
    assert after(store, LearnError("The OPD loss is not finite.")).state == "failed"
    broken = after(store, EngineError("The engine failed while it computed."))
    assert (broken.state, broken.where) == ("paused", "step 3 of 8")
    assert "The engine failed while it computed. It goes on from step 3 of 8." in broken.detail
    assert after(store, ZeroDivisionError("x"), "gate", 8).state == "paused"
    for phase in ("start", "planned"):
        assert after(store, EngineError("No such file."), phase, 0).state == "failed"
    assert store.runs.running() is None


def test_nothing_to_learn_is_no_failure(store: Store) -> None:
    run = after(store, NothingNew(), "start", 0)
    assert (run.state, run.failures) == ("failed", ())
    assert "nothing new to learn" in run.detail


def test_left_or_stopped_as_it_was_asked(store: Store) -> None:
    early = begun(store)
    assert _left(store, early) == 4
    assert store.runs.get(early).detail == "It was left, and begins anew at the next run."
    first = store.runs.begin()
    store.runs.set_checkpoint(first, "gate", 8, 8)
    assert _left(store, first) == 4
    assert store.runs.get(first).state == "paused"
    second = store.runs.begin()
    store.runs.set_checkpoint(second, "training", 1, 8)
    store.runs.ask(second, "stop")
    assert _left(store, second) == 3
    assert store.runs.get(second).state == "stopped"
    assert _left(store, second) == 0, "it had ended already, and stays as it is"
    assert store.runs.get(second).state == "stopped"


@pytest.mark.skipif(os.name != "posix", reason="keeps it waiting at a FIFO")
def test_it_leaves_if_the_program_that_started_it_was_gone_before_it_could_look(
    store: Store, home: Paths, tmp_path: Path
) -> None:
    run_id = store.runs.begin("idle")
    store.runs.set_checkpoint(run_id, "start", 0, 8)
    with store.database.write() as db:
        db.table("runs").update(run_id, {"process": f"{2**22 + 1}:1"})  # No system has such a number.
    os.mkfifo(tmp_path / "request.json")
    command = [sys.executable, "-m", "claw_trainer", "--run", str(run_id), "--request", str(tmp_path / "request.json")]
    search = os.pathsep.join(name for name in sys.path if name)
    environment = {**os.environ, HOME_VARIABLE: str(home.data), "PYTHONPATH": search}
    assert subprocess.run(command, env=environment, timeout=30, check=False).returncode == LEFT
    store.runs.bury()
    run = store.runs.get(run_id)
    assert (run.state, run.failures) == ("paused", ())


IN_AN_IMPORT = """
import argparse, os, signal, sys, time
from pathlib import Path
from claw_trainer import __main__ as trainer, leaving
leaving.PATIENCE_S = 30.0

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in ("claw_trainer.run", "colorsys"):
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.2)
            except BaseException as error:
                raise ImportError("taken for another error") from error
            if name == "claw_trainer.run":
                raise ValueError("Error building model validator")

sys.meta_path.insert(0, Finder())
"""


def python(store: Store, home: Paths, script: str) -> tuple[int, str]:
    search = os.pathsep.join(name for name in sys.path if name)
    environment = {**os.environ, HOME_VARIABLE: str(home.data), "PYTHONPATH": search}
    ended = subprocess.run(
        [sys.executable, "-c", IN_AN_IMPORT + script], env=environment, timeout=60, check=False, capture_output=True
    )
    return ended.returncode, ended.stdout.decode() + ended.stderr.decode()


def begun(store: Store) -> int:
    run_id = store.runs.begin()
    store.runs.set_checkpoint(run_id, "start", 0, 8)
    return run_id


@pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")
def test_what_goes_wrong_while_it_is_asked_to_leave_counts_as_left(store: Store, home: Paths) -> None:
    run_id = begun(store)
    options = f"argparse.Namespace(run={run_id}, request=Path('none'), judge=False)"
    assert python(store, home, f"sys.exit(trainer._run({options}))") == (LEFT, "")
    run = store.runs.get(run_id)
    assert (run.state, run.failures) == ("paused", ())


@pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")
def test_in_an_import_leaving_waits_and_comes_right_after_it(store: Store, home: Paths) -> None:
    script = f"""
from claw_local.paths import locate
from claw_local.store import Store
with leaving.Leaving(Store(locate()), {begun(store)}, "{os.getpid()}"):
    try:
        import colorsys
        print("imported", flush=True)
        for _ in range(1000):
            time.sleep(0.01)
        print("not left")
    except leaving.Left:
        print("left")
"""
    assert python(store, home, script) == (0, "imported\nleft\n")


def test_an_unexpected_error_is_said_in_one_line(store: Store) -> None:
    run = after(store, ValueError("\n  first   line\nsecond line"), "start", 0)
    assert "(ValueError: first line). Its log has" in run.detail
    run = after(store, ValueError("long " * 200), "start", 0)
    assert len(run.detail) < 280 and "…)" in run.detail
    assert run.failures[0].words == run.detail
