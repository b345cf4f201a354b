"""Only one run at a time, across real processes, and a claim whose process was killed holds nobody up."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from claw_local.assistant import Assistant
from claw_local.errors import StoreError
from claw_local.idle import extra
from claw_local.idle.job import Job
from claw_local.paths import Paths
from claw_local.settings import Settings
from claw_local.store import Store
from claw_local.store.records import StartedBy
from claw_local.store.runs import Runs

ROOT = Path(__file__).parents[2]
CLAIM = """
import sys, time
from claw_local.errors import LearnError
from claw_local.paths import locate
from claw_local.store import Store
store = Store(locate(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
try:
    print("claimed", store.runs.begin("idle"), flush=True)
    time.sleep(60)
except LearnError as error:
    print("refused", error, flush=True)
"""


def claimer(home: Paths) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIM, str(home.data)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().split()[0]


def test_of_many_that_begin_at_once_one_does(home: Paths) -> None:
    Store(home).close()
    many = [claimer(home) for _ in range(4)]
    try:
        for process in many:
            go(process)
        assert sorted(said(process) for process in many) == ["claimed", "refused", "refused", "refused"]
    finally:
        for process in many:
            process.kill()
            process.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_one_is_noticed_and_the_next_may_begin_at_once(home: Paths) -> None:
    store = Store(home)
    first, second, third = (claimer(home) for _ in range(3))
    try:
        go(first)
        assert said(first) == "claimed"
        go(second)
        assert said(second) == "refused"
        assert store.runs.running() is not None
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert store.runs.running() is None
        began = time.monotonic()
        go(third)
        assert said(third) == "claimed"
        assert time.monotonic() - began < 5
        assert [run.state for run in store.runs.list()] == ["running", "failed"]
    finally:
        for process in (first, second, third):
            process.kill()
            process.wait()
        store.close()


def test_a_number_given_to_another_process_since_is_not_the_one_that_claimed(home: Paths) -> None:
    store = Store(home)
    run_id = store.runs.begin("idle")
    identity = store.runs.get(run_id).process
    pid, _, started = identity.partition(":")  # Seconds, or on Linux clock ticks and the start of the machine.
    with store.database.write() as db:
        db.table("runs").update(run_id, {"process": f"{pid}:1{started}"})
    assert store.runs.running() is None, "this process lives, but it began later"
    assert store.runs.begin("idle") != run_id
    store.close()


def test_one_that_cannot_be_begun_for_a_busy_database_holds_nobody_up(
    home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise StoreError("The database has been locked by another program.")

    store, model = Store(home), tmp_path / "model.gguf"
    model.write_bytes(b"GGUF")
    monkeypatch.setattr(extra, "missing", list)
    monkeypatch.setattr(Runs, "set_checkpoint", busy)
    with pytest.raises(StoreError, match="locked"):
        Job.start(store, home, Settings(), model)
    (run,) = store.runs.list()
    assert run.state == "failed" and "locked" in run.detail
    assert not (home.runs / str(run.id)).exists()
    store.close()


@pytest.mark.parametrize("started_by", ["person", "idle"])
def test_turning_learning_off_lets_whatever_run_goes_on_leave(home: Paths, started_by: StartedBy) -> None:
    with Assistant.open(home.data) as assistant:
        assistant.learn.on()
        run_id = assistant.store.runs.begin(started_by)
        assistant.learn.off()
        assert assistant.store.runs.get(run_id).asked == "leave"
