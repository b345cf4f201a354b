"""A run that was left, at any moment and however often, ends with the same adapter as one that never was."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_trainer import checkpoint
from claw_trainer.checkpoint import State
from tests.trainer.leaving import Trial, losses, settings_of, teach

STEPS = 3
SETTINGS = settings_of(STEPS)


class Left(BaseException):
    pass


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, tiny_models: dict[str, Path]) -> Path:
    folder = tmp_path_factory.mktemp("taught")
    teach(folder, tiny_models["llama"], SETTINGS)
    return folder


@pytest.fixture(scope="module")
def engine(tiny_models: dict[str, Path]) -> Iterator[LlamaCppEngine]:
    with LlamaCppEngine.open(tiny_models["llama"], SETTINGS.model, cache_dir=None) as opened:
        yield opened


@pytest.fixture(scope="module")
def begin(
    tmp_path_factory: pytest.TempPathFactory, home: Path, tiny_models: dict[str, Path], engine: LlamaCppEngine
) -> Callable[[], Trial]:
    return lambda: Trial(home, tiny_models["llama"], SETTINGS, engine, tmp_path_factory.mktemp("trial"))


@pytest.fixture(scope="module")
def whole(begin: Callable[[], Trial]) -> tuple[bytes, State, int]:
    """The adapter and the state of a run that was never left, and how often it reported."""
    trial, reports = begin(), 0

    def count() -> None:
        nonlocal reports
        reports += 1

    trial.before = count
    state = trial.go()
    return trial.adapter, state, reports


def left_at(trial: Trial, moments: list[int]) -> State:
    """Leave the run at the n-th report after each beginning, then let it come to its end."""
    for moment in moments:
        reports = 0

        def before(moment: int = moment) -> None:
            nonlocal reports
            reports += 1
            if reports > moment:
                raise Left

        trial.before = before
        try:
            return trial.go()
        except Left:
            continue
    trial.before = lambda: None
    return trial.go()


def test_an_uninterrupted_run_takes_its_steps_and_repeats_itself(
    begin: Callable[[], Trial], whole: tuple[bytes, State, int]
) -> None:
    adapter, state, reports = whole
    assert state.step == len(state.history) == STEPS
    assert reports > 3 * STEPS
    assert {step["score"] for step in state.history} != {1.0}, "there is something to learn"
    again = begin()
    assert losses(again.go()) == losses(state)
    assert again.adapter == adapter


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moments=st.lists(st.integers(0, 20), min_size=1, max_size=5))
def test_left_at_any_moments_it_ends_with_the_same_adapter_and_losses(
    begin: Callable[[], Trial], whole: tuple[bytes, State, int], moments: list[int]
) -> None:
    adapter, state, _ = whole
    trial = begin()
    ended = left_at(trial, moments)
    assert losses(ended) == losses(state)
    assert trial.adapter == adapter
    assert ended.seen == state.seen


def test_left_at_every_moment_once_in_one_run(begin: Callable[[], Trial], whole: tuple[bytes, State, int]) -> None:
    adapter, state, reports = whole
    trial = begin()
    ended = left_at(trial, list(range(2, reports)))
    assert losses(ended) == losses(state)
    assert trial.adapter == adapter


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_disk_leaves_what_was_kept_and_the_run_goes_on_when_there_is_room(
    begin: Callable[[], Trial], whole: tuple[bytes, State, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter, _, _ = whole
    trial = begin()

    def fill() -> None:
        """Once a step is done, what is written next lands on a disk without room."""
        state = trial.kept / checkpoint.STATE
        if state.exists() and '"step": 1' in state.read_text():
            monkeypatch.setattr(checkpoint, "write_whole", lambda path, data: Path("/dev/full").write_bytes(data))
            trial.before = lambda: None

    trial.before = fill
    with pytest.raises(OSError, match="space") as caught:
        trial.go()
    assert caught.value.errno == errno.ENOSPC
    kept = checkpoint.read(trial.kept)
    assert kept is not None
    assert (kept.step, kept.phase) == (1, "practising")
    monkeypatch.undo()
    trial.go()
    assert trial.adapter == adapter


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "state"])
def test_damaged_files_are_noticed_and_the_run_begins_anew(
    begin: Callable[[], Trial],
    whole: tuple[bytes, State, int],
    damage: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    adapter, _, _ = whole
    trial = begin()

    def leave_late() -> None:
        kept = trial.kept / checkpoint.STATE
        if kept.exists() and '"step": 2' in kept.read_text():
            raise Left

    trial.before = leave_late
    with pytest.raises(Left):
        trial.go()
    (tensors,) = trial.kept.glob("*.safetensors")
    data = tensors.read_bytes()
    if damage == "cut":
        tensors.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        tensors.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "gone":
        tensors.unlink()
    else:
        (trial.kept / checkpoint.STATE).write_text("{")
    trial.before = lambda: None
    trial.go()
    assert "begins anew" in capsys.readouterr().out
    assert trial.adapter == adapter


def test_nothing_is_left_aside_and_only_the_newest_tensors_are_kept(begin: Callable[[], Trial]) -> None:
    trial = begin()
    trial.go()
    names = {file.name for file in trial.kept.iterdir()}
    assert names == {"plan.json", "state.json", f"step-{STEPS}.safetensors"}
    assert all(file.stat().st_mode & 0o077 == 0 for file in trial.kept.iterdir())
