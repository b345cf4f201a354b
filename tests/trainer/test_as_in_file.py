"""A base whose matrices stay in the file's blocks: the same gradients, less memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest
import torch

from benchmarks.weights import qwen3_4b
from claw_local.engine.gguf_file import GgufHeader, GgufTensor
from claw_local.errors import ModelError
from claw_local.settings import LearningSettings
from claw_trainer.as_in_file import BlockEmbedding, BlockLinear
from claw_trainer.batches import Sample
from claw_trainer.economy import Economy, Holding, Sizes, hold_of
from claw_trainer.policy import Policy
from claw_trainer.step import Objective, Trainer
from claw_trainer.weights import load_base

PUBLISHED_BYTES = next(
    entry["size_bytes"]
    for entry in json.loads(resources.files("claw_local.data").joinpath("models.json").read_text("utf-8"))
    if entry["file"] == "Qwen3-4B-Instruct-2507-Q4_K_M.gguf"
)
PROMPT, HINTED, RESPONSE = (5, 6, 7, 8), (5, 6, 9, 7, 8), (65, 66, 67, 68, 69, 70)


def gradients(path: Path, make_random: Callable[..., None], hold: Holding) -> dict[str, torch.Tensor]:
    """Of one step on one sample, by the LoRA's matrix."""
    policy = Policy(load_base(path, exact=True, hold=hold), rank=4, alpha=8)
    make_random(policy, 0.12)
    trainer = Trainer(policy, Objective(), max_grad_norm=1e9)
    found: dict[str, torch.Tensor] = {}
    trainer.optimiser.register_step_pre_hook(
        lambda *_: found.update({n: p.grad.clone() for n, p in policy.model.named_parameters() if p.grad is not None})
    )
    trainer.step([Sample(PROMPT, RESPONSE, score=1.0, teacher_prompt_ids=HINTED)])
    return found


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "gemma3"])
def test_gradients_are_those_of_the_dequantised_model(
    quantised_models: dict[str, Path], make_random: Callable[..., None], architecture: str
) -> None:
    path = quantised_models[architecture]
    expected = gradients(path, make_random, "dequantised")
    found = gradients(path, make_random, "as-in-file")
    assert found.keys() == expected.keys() and len(found) == 2 * 7 * (7 if architecture == "gemma3" else 3)
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-3, atol=1e-5 * float(gradient.abs().max()) + 1e-7)


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "gemma3"])
def test_every_matrix_stays_in_its_blocks_and_says_the_same(
    quantised_models: dict[str, Path], architecture: str
) -> None:
    plain = Policy(load_base(quantised_models[architecture], exact=True), rank=4, alpha=8)
    base = load_base(quantised_models[architecture], exact=True, hold="as-in-file")
    held = [module for module in base.model.modules() if isinstance(module, BlockLinear | BlockEmbedding)]
    assert len(held) == 7 * len(base.model.model.layers) + 2
    assert all(module.weight.dtype == torch.uint8 for module in held)
    numbers = [p for p in base.model.parameters() if p.dtype != torch.uint8]
    assert all(p.dim() == 1 for p in numbers), "only norms and biases are numbers"
    found = Policy(base, rank=4, alpha=8).response_logprobs("base", [(PROMPT, RESPONSE)])[0]
    torch.testing.assert_close(found, plain.response_logprobs("base", [(PROMPT, RESPONSE)])[0], rtol=1e-4, atol=1e-4)


def test_what_the_file_keeps_in_another_way_is_dequantised(
    quantised_models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from claw_trainer import gguf_tensors

    monkeypatch.setattr(gguf_tensors, "KINDS", {n: kind for n, kind in gguf_tensors.KINDS.items() if n != 8})
    base = load_base(quantised_models["llama"], exact=True, hold="as-in-file")
    held = {name for name, module in base.model.named_modules() if isinstance(module, BlockLinear | BlockEmbedding)}
    assert "model.layers.0.mlp.up_proj" in held
    assert base.model.get_submodule("model.layers.0.mlp.down_proj").weight.dtype == torch.float32


def test_a_matrix_of_another_shape_is_named(quantised_models: dict[str, Path], tmp_path: Path) -> None:
    data = bytearray(quantised_models["qwen2"].read_bytes())
    key = b"qwen2.feed_forward_length"
    at = data.index(key) + len(key) + 4
    assert int.from_bytes(data[at : at + 4], "little") == 96
    data[at : at + 4] = (64).to_bytes(4, "little")
    path = tmp_path / "other.gguf"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"blk\.0\.ffn_gate\.weight .* is \[96, 64\]"):
        load_base(path, hold="as-in-file")


def header_of_qwen3_4b() -> GgufHeader:
    tensors = {name: GgufTensor(shape, kind, 0) for name, (shape, kind) in qwen3_4b().items()}
    return GgufHeader(3, {"general.architecture": "qwen3"}, tensors, 0, 0, 0, {})


def test_by_calculation_qwen3_4b_trains_within_6_gb_as_in_the_file() -> None:
    header = header_of_qwen3_4b()
    tensors = sum(tensor.size or 0 for tensor in header.tensors.values())
    # The published file (see models.json) holds the vocabulary too: 151,936 tokens and their merges, 40 bytes each.
    assert 5e6 < PUBLISHED_BYTES - tensors < 7e6
    sizes = Sizes.of(header, rank=16)
    assert 0.99 * tensors < sizes.weight_bytes("as-in-file") <= 1.01 * tensors
    assert sizes.weight_bytes("dequantised", 2) == pytest.approx(8.05e9, rel=0.01)  # its published bf16 file
    notes: list[str] = []
    economy = Economy(0, int(6e9), lambda level, why: notes.append(why))
    economy.fit(sizes)
    assert economy.hold == "as-in-file"
    assert sizes.bytes_at(economy.level) < 6e9 < sizes.bytes_at(economy.level - 1)
    assert notes[-1].startswith("base weights as in the file")


@pytest.mark.parametrize(
    ("settings", "holds"),
    [
        ({}, ["dequantised", "dequantised", "as-in-file", "nf4"]),
        ({"precision": "bf16"}, ["dequantised", "dequantised", "as-in-file", "nf4"]),
        ({"precision": "as-in-file"}, ["as-in-file", "as-in-file", "as-in-file", "nf4"]),
        ({"precision": "nf4"}, ["nf4"] * 4),
    ],
)
def test_a_setting_says_how_weights_are_held_and_too_little_memory_goes_further(
    settings: dict[str, object], holds: list[str]
) -> None:
    learning = LearningSettings(**settings)
    hold = hold_of(learning)
    sizes = Sizes.of(header_of_qwen3_4b(), 16, learning)
    assert (
        sizes.weight_bytes(hold, sizes.itemsize) < sizes.bytes_at(0) < sizes.weight_bytes(hold, sizes.itemsize) + 12e9
    )
    assert [Economy(level, 0, lambda *_: None, hold=hold).hold for level in (0, 2, 3, 4)] == holds
