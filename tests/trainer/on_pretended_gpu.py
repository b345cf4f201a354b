"""A run on a GPU that is pretended. `test_device.py` runs this in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from claw_local.settings import LearningSettings
from claw_trainer import checkpoint, policy, step
from claw_trainer.batches import Sample, pack
from claw_trainer.checkpoint import State
from claw_trainer.device import PROCESSOR, Place
from claw_trainer.economy import Economy
from claw_trainer.policy import Policy
from claw_trainer.step import Method, Objective, Trainer
from claw_trainer.weights import load_base
from tests.trainer.leaving import Trial, losses
from tests.trainer.pretended import GPU, Pretended, WrongDevice, pretended_gpu
from tests.trainer.test_leaving import begin, engine, home, left_at

__all__ = ["begin", "engine", "home"]

SAMPLES = [
    Sample((1, 2, 3), (4, 5, 6, 7), (1, 2, 90, 91, 3), (-2.0, -3.0, -1.0, -4.0), score=1.0),
    Sample((10, 11), (12, 13, 14), behaviour_logprobs=(-6.0, -6.5, -7.0), score=-1.0),
    Sample((20, 21, 22, 23), (24, 25), (80, 20, 21, 22, 23)),
]
EXACT = Place(GPU, 1 << 30)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with pretended_gpu(monkeypatch):
        yield


def trainer_on(
    place: Place, model: Path, *, method: Method = "combined", recompute: bool = False, parent: Path | None = None
) -> Trainer:
    place.prepare()
    made = Policy(place.put(load_base(model, exact=True)), rank=4, alpha=8, parent=parent)
    made.computing = place.computing
    if recompute:
        made.checkpoint_gradients()
    return Trainer(made, Objective(method=method, top_k=20), micro_tokens=8, max_norm=1.0)


def told(metrics: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if name != "seconds"}


@pytest.mark.parametrize("method", ["combined", "opd-token"])
@pytest.mark.parametrize("architecture", ["llama-stretched", "qwen2"])
def test_a_step_on_a_gpu_is_the_same_step_with_everything_on_it(
    tiny_models: dict[str, Path], gpu: None, architecture: str, method: Method
) -> None:
    model = tiny_models[architecture]
    here = trainer_on(PROCESSOR, model, method=method)
    there = trainer_on(EXACT, model, method=method, recompute=method == "opd-token")
    assert {parameter.device for parameter in there.policy.model.parameters()} == {GPU}
    assert {buffer.device for buffer in there.policy.model.buffers()} == {GPU}
    for _ in range(2):
        assert told(there.step(SAMPLES, epochs=2)) == told(here.step(SAMPLES, epochs=2))
    moments = [value for one in there.optimiser.state.values() for name, value in one.items() if name != "step"]
    assert len(moments) == 2 * len(there.policy.parameters()) and all(isinstance(one, Pretended) for one in moments)


def test_what_a_run_on_a_gpu_keeps_and_writes_is_the_same_files(
    tiny_models: dict[str, Path], gpu: None, tmp_path: Path
) -> None:
    written = []
    for name, place in (("cpu", PROCESSOR), ("gpu", EXACT)):
        folder = tmp_path / name
        folder.mkdir()
        trainer = trainer_on(place, tiny_models["llama"])
        trainer.step(SAMPLES)
        assert all(type(one) is torch.Tensor for one in checkpoint.tensors_of(trainer).values())
        state = State(step=1, device=str(place.device))
        checkpoint.write(folder, state, trainer, place)
        again = trainer_on(place, tiny_models["llama"])
        found = checkpoint.read(folder, place)
        assert found is not None and checkpoint.device_of(folder) == str(place.device)
        checkpoint.restore(folder, found, again)
        metrics = told(again.step(SAMPLES))
        assert metrics == told(trainer.step(SAMPLES)), "it goes on as if it had never been left"
        # A parent is loaded onto the same device, and continued.
        child = trainer_on(place, tiny_models["llama"], parent=again.policy.save(folder / "peft"))
        child.step(SAMPLES)
        child.policy.save(folder / "child")
        files = ("peft/adapter_model.safetensors", "child/adapter_model.safetensors", "step-1.safetensors")
        written.append([(folder / file).read_bytes() for file in files])
    assert written[0] == written[1]


def test_a_run_that_was_left_on_a_gpu_goes_on_without_one(
    tiny_models: dict[str, Path], gpu: None, tmp_path: Path
) -> None:
    there = trainer_on(EXACT, tiny_models["llama"])
    there.step(SAMPLES)
    checkpoint.write(tmp_path, State(step=1, device=str(GPU)), there, EXACT)
    here = trainer_on(PROCESSOR, tiny_models["llama"])
    found = checkpoint.read(tmp_path)
    assert found is not None
    checkpoint.restore(tmp_path, found, here)
    assert here.step(SAMPLES)["loss"] == pytest.approx(there.step(SAMPLES)["loss"], rel=1e-5)


def test_the_gpu_s_random_numbers_go_on_as_well(tiny_models: dict[str, Path], gpu: None, tmp_path: Path) -> None:
    kept = torch.arange(16, dtype=torch.uint8) * 3
    torch.cuda.set_rng_state(kept, GPU)
    checkpoint.write(tmp_path, State(), None, EXACT)
    torch.cuda.set_rng_state(torch.zeros(16, dtype=torch.uint8), GPU)
    assert checkpoint.read(tmp_path, EXACT) is not None
    assert torch.cuda.get_rng_state(GPU).tolist() == kept.tolist()
    trainer_on(EXACT, tiny_models["llama"])
    assert torch.cuda.get_rng_state(GPU).tolist() == kept.tolist(), "a new LoRA's own seed is not the run's"


@pytest.mark.parametrize("where", ["batch", "weight", "teacher"])
def test_what_is_forgotten_on_the_processor_is_noticed(
    tiny_models: dict[str, Path], gpu: None, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """That the test above would fail: each is a `.to(device)` left out."""
    trainer = trainer_on(EXACT, tiny_models["llama"])
    if where == "batch":
        monkeypatch.setattr(step, "pack", lambda turns, _: pack(turns, "cpu"))
    elif where == "weight":
        norm = trainer.policy.base.model.model.layers[1].input_layernorm
        norm.weight = torch.nn.Parameter(norm.weight.detach().cpu(), requires_grad=False)
    else:
        monkeypatch.setattr(policy, "pack", lambda turns, _: pack(turns, "cpu"))
    with pytest.raises(WrongDevice):
        trainer.step(SAMPLES)


def test_memory_is_saved_by_what_the_gpu_holds(tiny_models: dict[str, Path], gpu: None) -> None:
    notes: list[str] = []
    sizes: Any = EXACT.sizes(tiny_models["llama"], LearningSettings(rank=4))
    between = (sizes.bytes_at(1) + sizes.bytes_at(2)) // 2
    economy = Place(GPU, between).economise(Economy(0, 1, lambda level, why: notes.append(why)))
    economy.fit(sizes)
    assert economy.level == 2 and economy.bound == between and len(notes) == 2
    economy.watch()
    torch.cuda.memory_reserved = lambda device=None: between + 1  # type: ignore[assignment]
    with pytest.raises(MemoryError):
        economy.watch()


def test_a_whole_run_is_left_and_goes_on_like_any_other(
    begin: Callable[[], Trial], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pretended_gpu(monkeypatch):
        trials = [begin(), begin()]
        for trial in trials:
            trial.place = Place(GPU, 1 << 40)
        state = left_at(trials[0], [])
        ended = left_at(trials[1], [3, 9])
    assert ended.device == str(GPU) and losses(ended) == losses(state)
    assert trials[0].adapter == trials[1].adapter
    assert trials[0].notes == []
