"""Where a run computes: the processor, or a GPU. There is none here: what is chosen, and how narrow numbers are."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from claw_local.errors import LearnError
from claw_local.settings import LearningSettings
from claw_trainer.batches import Sample, pack
from claw_trainer.device import PROCESSOR, Place, choose
from claw_trainer.economy import is_out_of_memory
from claw_trainer.policy import Policy
from claw_trainer.step import Objective, Trainer
from claw_trainer.weights import load_base

SAMPLES = [
    Sample((1, 2, 3), (4, 5, 6, 7), (1, 2, 90, 91, 3), (-2.0, -3.0, -1.0, -4.0), score=1.0),
    Sample((20, 21, 22, 23), (24, 25), (80, 20, 21, 22, 23)),
]


def test_in_bfloat16_only_the_blocks_matrices_are_narrow_and_the_step_is_nearly_the_same(
    tiny_models: dict[str, Path],
) -> None:
    """As on a GPU, but with the processor's own bfloat16."""

    def trainer(place: Place) -> Trainer:
        made = Policy(place.put(load_base(tiny_models["qwen2"], exact=True)), rank=4, alpha=8)
        made.computing = place.computing
        return Trainer(made, Objective(top_k=20), micro_tokens=8)

    one, other = trainer(PROCESSOR), trainer(Place(bf16=True))
    narrow = {name for name, weight in other.policy.model.named_parameters() if weight.dtype == torch.bfloat16}
    assert len(narrow) == 3 * 7 and all(name.endswith("_proj.base_layer.weight") for name in narrow)
    assert all(weight.dtype == torch.float32 for weight in other.policy.parameters())
    hidden = other.policy.hidden(pack([((1, 2), (3, 4))]))
    assert hidden.dtype == other.policy.logits(hidden).dtype == torch.float32
    found, expected = other.step(SAMPLES), one.step(SAMPLES)
    assert found["loss"] != expected["loss"] == pytest.approx(found["loss"], rel=0.03, abs=0.01)
    assert found["grad_norm"] == pytest.approx(expected["grad_norm"], rel=0.1)


@pytest.mark.parametrize(
    ("setting", "free", "began", "expected"),
    [
        ("auto", 8 << 30, "", "cuda:0"),
        ("auto", 300 << 20, "", "cpu"),
        ("auto", 8 << 30, "cpu", "cpu"),
        ("auto", 8 << 30, "cuda:0", "cuda:0"),
        ("auto", 300 << 20, "cuda:0", "cpu"),
        ("auto", 8 << 30, "cuda:5", "cuda:0"),
        ("cpu", 8 << 30, "cuda:0", "cpu"),
        ("cuda", 300 << 20, "", "cuda:0"),
        ("cuda:0", 8 << 30, "cpu", "cuda:0"),
        ("cuda:1", 8 << 30, "", None),
    ],
)
def test_where_a_run_computes(
    tiny_models: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    free: int,
    began: str,
    expected: str | None,
) -> None:
    learning = LearningSettings(device=setting)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device=None: (free, 2 * free))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (8, 0))
    if expected is None:
        with pytest.raises(LearnError, match="torch finds 1 NVIDIA GPU"):
            choose(learning, tiny_models["llama"], began=began)
        return
    place = choose(learning, tiny_models["llama"], began=began)
    assert str(place.device) == expected
    assert place.bound == (int(0.75 * free) if place.on_gpu else 0) and place.bf16 == place.on_gpu


def test_without_a_gpu_auto_is_the_processor_and_cuda_is_refused(tiny_models: dict[str, Path]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert choose(LearningSettings(), tiny_models["llama"], began="cuda:0") == PROCESSOR
    with pytest.raises(LearnError, match="torch finds no NVIDIA GPU"):
        choose(LearningSettings(device="cuda"), tiny_models["llama"])


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("CUDA error: out of memory"),
    ],
)
def test_a_gpu_s_ways_of_being_full_are_known(error: Exception) -> None:
    assert is_out_of_memory(error)
    assert not is_out_of_memory(RuntimeError("CUDA error: device-side assert triggered"))
