"""The trainer's process: it leaves within seconds, may be killed, outlives nobody, and goes on where it was."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from claw_local import Assistant
from claw_local.cli.learn import _say_what_was_left
from claw_local.errors import LearnError
from claw_local.idle import handing
from claw_local.idle import job as job_module
from claw_local.idle.failures import waits_for_person
from claw_local.idle.job import LearningPaused, LearnResult, Progress
from claw_local.idle.kept import folder_of
from claw_local.settings import Settings
from claw_local.store.forgetting import Request
from tests.idle.cards import answer_on_it, card
from tests.trainer.leaving import SAMPLING, settings_of, teach

STEPS = 5
SETTINGS = settings_of(STEPS)


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory, tiny_models: dict[str, Path]) -> Path:
    folder = tmp_path_factory.mktemp("taught")
    teach(folder, tiny_models["llama"], SETTINGS)
    return folder


@pytest.fixture(scope="module")
def opened(
    tmp_path_factory: pytest.TempPathFactory, taught: Path, tiny_models: dict[str, Path]
) -> Callable[..., Assistant]:
    """Opens a copy of the taught home."""

    def open_copy(settings: Settings = SETTINGS) -> Assistant:
        folder = tmp_path_factory.mktemp("homes") / "home"
        shutil.copytree(taught, folder)
        return Assistant.open(folder, model=tiny_models["llama"], settings=settings)

    return open_copy


@pytest.fixture(scope="module")
def whole(opened: Callable[..., Assistant]) -> tuple[str, list[dict[str, float]]]:
    """The adapter and the losses of a run that was never left."""
    with opened() as assistant:
        return adapter_of(assistant, assistant.learn.now())


def adapter_of(assistant: Assistant, result: LearnResult) -> tuple[str, list[dict[str, float]]]:
    record = assistant.adapters.get(result.adapter)
    steps = [{k: v for k, v in step.items() if k != "seconds"} for step in record.metrics["steps"]]
    return json.dumps(record.sha256, sort_keys=True), steps


def at(fraction: float, do: Callable[[], None]) -> Callable[[Progress], None]:
    """Something to do once at the first progress beyond a fraction, loading left aside."""
    done = threading.Event()

    def heard(progress: Progress) -> None:
        if progress.phase in ("practising", "training", "gate") and progress.fraction >= fraction and not done.is_set():
            done.set()
            do()

    return heard


def test_left_with_new_lessons_meanwhile_killed_and_gone_on_with_it_ends_the_same(
    opened: Callable[..., Assistant],
    whole: tuple[str, list[dict[str, float]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with opened() as assistant:
        leave = threading.Event()
        with pytest.raises(LearningPaused, match="goes on from"):
            assistant.learn.now(at(0.2, leave.set), leave=leave)
        (run,) = assistant.learn.runs()
        assert run.state == "paused"
        assert not psutil.pid_exists(int(run.process.partition(":")[0]))
        assert assistant.learn.paused().run == run
        _say_what_was_left(assistant)
        assert f"Run {run.id} goes on from {run.where}." in capsys.readouterr().err
        assert not [folder for folder in assistant.paths.adapters.iterdir() if folder.name.startswith("run-")]

        later = assistant.ask("What is ice?", sampling=SAMPLING)
        assistant.feedback(later.message_id, "bad", hint="Please answer in upper case only.")

        def kill() -> None:
            until = time.monotonic() + 20
            while (pid := int(assistant.store.runs.get(run.id).process.partition(":")[0])) == os.getpid():
                assert time.monotonic() < until, "the run is still claimed by who began it"
                time.sleep(0.02)
            os.kill(pid, signal.SIGKILL)

        with pytest.raises(LearnError, match="ended early: it was killed"):
            assistant.learn.now(at(0.0, kill))
        killed = assistant.store.runs.get(run.id)
        assert killed.state == "paused"
        assert killed.checkpoint["step"] >= run.checkpoint["step"]
        assert [failure.kind for failure in killed.failures] == ["killed"]
        assert waits_for_person(assistant.store) is None

        result = assistant.learn.now()
        assert adapter_of(assistant, result) == whole
        assert later.message_id not in assistant.adapters.get(result.adapter).lineage
        done = assistant.store.runs.get(run.id)
        assert (done.state, done.adapter_id) == ("done", result.adapter)
        assert not folder_of(assistant.paths, run.id).exists()
        assert assistant.learn.status().lessons >= 1, "the new lesson waits for the next run"


def test_it_is_gone_within_three_seconds_and_can_go_on_only_if_nothing_that_counts_changed(
    opened: Callable[..., Assistant],
) -> None:
    with opened() as assistant:
        job = assistant.learn.start()
        while job.progress().phase not in ("practising", "training", "gate"):
            assert job.running
            time.sleep(0.05)
        process = psutil.Process(int(assistant.store.runs.get(job.run_id).process.partition(":")[0]))
        assert process.nice() > 0
        asked = time.monotonic()
        run = job.leave()
        assert time.monotonic() - asked < 3.0
        assert run.state == "paused"
        assert not process.is_running()

        # Another adapter in use, a setting that counts, or a reply that is gone: it is dropped, and it is said why.
        assert assistant.learn.paused().run is not None
        other = settings_of(STEPS)
        other.learning.learning_rate = 1e-3
        assistant.settings = other
        paused = assistant.learn.paused()
        assert paused.run is None
        assert "the setting learning.learning_rate has changed" in paused.dropped[0]
        assert assistant.store.runs.get(job.run_id).state == "dropped"
        assert not folder_of(assistant.paths, job.run_id).exists()


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_a_message_while_a_run_has_the_gpu_s_memory_is_answered_and_the_run_goes_on_later(
    opened: Callable[..., Assistant], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card(tmp_path, monkeypatch)  # Nothing of it is free.
    answer_on_it(monkeypatch)
    monkeypatch.setattr(handing, "GIVE_S", 0.2)
    with opened() as assistant:
        chat = assistant.ask("What is ice?", sampling=SAMPLING)
        job = assistant.learn.start()
        assert not assistant.loaded, "it made room for the run"
        while job.progress().phase not in ("practising", "training", "gate"):
            assert job.running
            time.sleep(0.05)
        trainer = int(assistant.store.runs.get(job.run_id).process.partition(":")[0])
        asked = time.monotonic()
        reply = assistant.stream("And water?", chat=chat.chat_id, sampling=SAMPLING)
        first = next(iter(reply))
        assert time.monotonic() - asked < 4.0
        assert not psutil.pid_exists(trainer) or psutil.Process(trainer).status() == psutil.STATUS_ZOMBIE
        assert (first + "".join(reply), assistant.loaded) == (reply.answer.text, True)
        run = assistant.learn.paused().run
        assert run is not None and run.id == job.run_id and run.failures == ()


def test_stopped_it_keeps_nothing_and_forgetting_drops_one_that_is_paused(opened: Callable[..., Assistant]) -> None:
    with opened() as assistant:
        job = assistant.learn.start("person")
        run = job.stop()
        assert run.state == "stopped"
        assert not folder_of(assistant.paths, run.id).exists()
        assert assistant.learn.paused().run is None

        leave = threading.Event()
        with pytest.raises(LearningPaused):
            assistant.learn.now(at(0.1, leave.set), leave=leave)
        paused = assistant.learn.paused().run
        assert paused is not None
        folder = folder_of(assistant.paths, paused.id)
        assert folder.exists()
        assistant.forgetting.forget(Request(messages=(paused.lineage[0],)))
        assert assistant.store.runs.get(paused.id).state == "dropped"
        assert not folder.exists()


@pytest.mark.skipif(os.name != "posix", reason="kills a process group's parent")
def test_when_the_program_that_started_it_is_gone_it_leaves_by_itself(
    opened: Callable[..., Assistant], tiny_models: dict[str, Path]
) -> None:
    with opened() as assistant:
        home = assistant.paths.data
    script = f"""
import os, time
from claw_local import Assistant
from claw_local.settings import Settings
settings = Settings.model_validate_json({SETTINGS.model_dump_json()!r})
assistant = Assistant.open({str(home)!r}, model={str(tiny_models["llama"])!r}, settings=settings)
job = assistant.learn.start()
while job.progress().phase not in ("training", "gate"):
    time.sleep(0.05)
os._exit(9)
"""
    found = [str(Path(name)) for name in sys.path if name]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
    assert subprocess.run([sys.executable, "-c", script], env=environment, check=False).returncode == 9
    with Assistant.open(home, model=tiny_models["llama"], settings=SETTINGS) as assistant:
        end = time.monotonic() + 6
        while assistant.store.runs.running() is not None and time.monotonic() < end:
            time.sleep(0.05)
        (run,) = assistant.learn.runs()
        assert run.state in ("paused", "done")
        assert run.failures == ()


def test_killed_while_memory_was_short_it_begins_again_with_less(
    opened: Callable[..., Assistant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_module.Seen, "short", property(lambda seen: seen.most > 0))
    killed: list[int] = []
    cancel = threading.Event()

    with opened() as assistant:

        def kill_then_stop(progress: Progress) -> None:
            run = assistant.store.runs.running()
            if run is None or progress.phase not in ("practising", "training", "gate"):
                return
            if run.economy:
                cancel.set()
            elif progress.fraction > 0.2 and not killed:
                killed.append(run.id)
                os.kill(int(run.process.partition(":")[0]), signal.SIGKILL)

        with pytest.raises(LearnError, match="stopped"):
            assistant.learn.now(kill_then_stop, cancel)
        run = assistant.store.runs.get(killed[0])
        assert (run.state, run.economy) == ("stopped", 1)
        assert run.fallbacks[0].startswith("smaller micro-batches: it was killed while it held")
        assert [failure.kind for failure in run.failures] == ["memory"]
