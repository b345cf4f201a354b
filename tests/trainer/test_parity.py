"""llama.cpp with the GGUF LoRA and torch with the PEFT one must say the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from claw_local.adapters.gguf import convert_lora
from claw_local.engine.base import AdapterSlot
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.settings import ModelSettings
from claw_trainer.policy import Policy
from claw_trainer.weights import load_base

TEXT = (
    "In the morning she made tea, read the newspaper and walked to the small station by the river, where an old man "
    "was selling apples and pears to the travellers who waited for the train to the coast."
)


@contextmanager
def opened(path: Path) -> Iterator[LlamaCppEngine]:
    engine = LlamaCppEngine.open(path, ModelSettings(context=512), cache_dir=None)
    try:
        yield engine
    finally:
        engine.close()


def token_logprobs(logits: np.ndarray, token_ids: list[int]) -> np.ndarray:
    """[T - 1] log-probabilities of token_ids[1:] from [T, V] logits."""
    shifted = logits.astype(np.float64) - logits.max(1, keepdims=True)
    normalised = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return normalised[np.arange(len(token_ids) - 1), token_ids[1:]]


def torch_logprobs(policy: Policy, view: str, token_ids: list[int]) -> np.ndarray:
    return policy.response_logprobs(view, [(token_ids[:1], token_ids[1:])])[0].double().numpy()


def test_on_the_embedded_model_both_agree_and_unsetting_gives_the_base_back_exactly(
    model_path: Path, tmp_path: Path, make_random: Callable[..., None]
) -> None:
    policy = Policy(load_base(model_path))
    make_random(policy, 0.027)
    convert_lora(policy.save(tmp_path / "peft"), model_path, tmp_path / "adapter.gguf")
    with opened(model_path) as engine:
        token_ids = engine.tokenize(TEXT)
        before = engine.logits(token_ids, start=0)
        engine.set_adapters([AdapterSlot(tmp_path / "adapter.gguf")])
        with_lora = engine.logits(token_ids, start=0)
        engine.set_adapters([])
        after = engine.logits(token_ids, start=0)
    base, lora = token_logprobs(before, token_ids), token_logprobs(with_lora, token_ids)
    effect = np.abs(lora - base).mean()
    off = np.abs(lora - torch_logprobs(policy, "policy", token_ids)).mean()
    assert effect > 0.3, "the LoRA is too small to show anything"
    assert off <= 0.12
    assert np.abs(base - torch_logprobs(policy, "base", token_ids)).mean() <= 0.12
    assert np.array_equal(before, after)


@pytest.mark.parametrize("kind", ["llama", "llama-stretched", "qwen2", "qwen3", "gemma3"])
def test_on_exact_weights_both_agree_closely_and_a_wrong_row_order_shows(
    tiny_models: dict[str, Path], tmp_path: Path, make_random: Callable[..., None], kind: str
) -> None:
    path = tiny_models[kind]
    policy = Policy(load_base(path, exact=True), rank=4, alpha=8)
    make_random(policy, 0.12)
    folder = policy.save(tmp_path / "peft")
    right = convert_lora(folder, path, tmp_path / "right.gguf")
    wrong = convert_lora(folder, path, tmp_path / "wrong.gguf", permute=not kind.startswith("llama"))
    with opened(path) as engine:
        token_ids = engine.tokenize(TEXT)
        base = token_logprobs(engine.logits(token_ids, start=0), token_ids)
        engine.set_adapters([AdapterSlot(right)])
        lora = token_logprobs(engine.logits(token_ids, start=0), token_ids)
        engine.set_adapters([AdapterSlot(wrong)])
        misread = token_logprobs(engine.logits(token_ids, start=0), token_ids)
    expected = torch_logprobs(policy, "policy", token_ids)
    # what is left is llama.cpp's half-precision KV cache
    assert np.abs(base - torch_logprobs(policy, "base", token_ids)).mean() < 3e-3
    assert np.abs(lora - expected).mean() < 3e-3
    assert np.abs(lora - base).mean() > 0.3
    assert np.abs(misread - expected).mean() > 0.3


def test_a_half_precision_adapter_file_says_nearly_the_same(
    tiny_models: dict[str, Path], tmp_path: Path, make_random: Callable[..., None]
) -> None:
    path = tiny_models["llama"]
    policy = Policy(load_base(path, exact=True), rank=4, alpha=8)
    make_random(policy, 0.12)
    folder = policy.save(tmp_path / "peft")
    whole = convert_lora(folder, path, tmp_path / "whole.gguf")
    half = convert_lora(folder, path, tmp_path / "half.gguf", precision="f16")
    assert half.stat().st_size < whole.stat().st_size
    with opened(path) as engine:
        token_ids = engine.tokenize(TEXT)
        engine.set_adapters([AdapterSlot(half)])
        lora = token_logprobs(engine.logits(token_ids, start=0), token_ids)
    assert np.abs(lora - torch_logprobs(policy, "policy", token_ids)).mean() < 0.01


def test_the_base_view_is_the_model_without_its_lora(tiny_policy: Policy, make_random: Callable[..., None]) -> None:
    turn = ([1, 2, 3], [4, 5, 6, 7])
    before = tiny_policy.response_logprobs("policy", [turn])[0]
    make_random(tiny_policy, 0.12)
    assert torch.equal(tiny_policy.response_logprobs("base", [turn])[0], before)
    assert not torch.allclose(tiny_policy.response_logprobs("policy", [turn])[0], before, atol=0.01)
