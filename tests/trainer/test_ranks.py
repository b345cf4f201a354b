"""Several processes that train one adapter: the same losses as one, under `accelerate launch`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.errors import LearnError
from claw_local.idle.launching import launcher
from claw_local.settings import LearningSettings, Settings
from tests.trainer.leaving import settings_of, teach

STEPS = 3


def settings(processes: int) -> Settings:
    """Stored turns alone, so that both runs learn from the very same samples."""
    found = settings_of(STEPS)
    found.learning.rollouts, found.learning.replay, found.learning.processes = 0, 6, processes
    return found


def test_two_processes_have_the_losses_of_one(tmp_path: Path, tiny_models: dict[str, Path]) -> None:
    model = tiny_models["llama"]
    teach(tmp_path / "taught", model, settings(1))
    found = []
    for processes in (1, 2):
        home = tmp_path / f"home-{processes}"
        shutil.copytree(tmp_path / "taught", home)
        with Assistant.open(home, model=model, settings=settings(processes)) as assistant:
            try:
                result = assistant.learn.now()
            except LearnError as error:
                pytest.fail(f"{error}\n{next(assistant.paths.runs.glob('*.log')).read_text('utf-8')}")
            found.append(assistant.adapters.get(result.adapter).metrics["steps"])
    one, two = found
    assert len(one) == len(two) == STEPS
    for alone, shared in zip(one, two, strict=True):
        assert shared["samples"] == alone["samples"] > 2
        # Other micro-batches round otherwise where the processor multiplies bfloat16.
        for name in ("loss", "rl_loss", "opd_loss", "kl_base", "grad_norm", "norm"):
            assert shared[name] == pytest.approx(alone[name], rel=1e-2, abs=3e-4), name


def test_one_process_needs_no_launcher_and_a_settings_file_says_all_of_it() -> None:
    assert launcher(LearningSettings()) == []
    assert launcher(LearningSettings(processes=3))[-2:] == ["--num_processes", "3"]
    launched = launcher(LearningSettings(accelerate="/etc/two-machines.yaml"))
    assert launched[-2:] == ["--config_file", "/etc/two-machines.yaml"] and "--num_processes" not in launched
