"""Rounded as llama.cpp rounds: each layer gives what llama.cpp got for the same input."""

from __future__ import annotations

import claw_trainer  # isort: skip  # noqa: F401  before torch: see claw_trainer.cpu

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.gap import layer_errors
from benchmarks.tracing import Tracer
from claw_trainer import served
from claw_trainer.policy import Policy
from claw_trainer.weights import load_base


@pytest.mark.parametrize("kind", ["embedded", "llama", "qwen3"])
def test_a_layer_gives_what_llama_cpp_got_for_the_same_input(
    quantised_models: dict[str, Path], model_path: Path, kind: str
) -> None:
    path = model_path if kind == "embedded" else quantised_models[kind]
    tracer = Tracer(path, threads=1)
    try:
        errors = layer_errors(path, tracer.read(list(range(60, 84)), values=True))
    finally:
        tracer.close()
    assert len(errors["rounded"]) >= 12
    assert np.mean(errors["as it is"]) > 3e-3
    assert np.mean(errors["rounded"]) < 1e-3
    assert np.median(errors["rounded"]) < 1e-4


def test_attention_rounds_and_differentiates_as_without() -> None:
    states = [torch.randn(1, 2, 5, 8, requires_grad=True) for _ in range(3)]
    plain = [s.detach().clone().requires_grad_() for s in states]
    found = served.attention(*states, 8**-0.5)
    expected = torch.nn.functional.scaled_dot_product_attention(*plain, is_causal=True)
    torch.testing.assert_close(found, expected, rtol=0, atol=5e-3)
    assert not torch.equal(found, expected)
    slope = torch.randn_like(found)
    found.backward(slope)
    expected.backward(slope)
    for mine, other in zip(states, plain, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=0, atol=2e-2)


def test_a_whole_model_rounds_in_every_layer(quantised_models: dict[str, Path]) -> None:
    turn = ([5, 6, 7, 8], [65, 66, 67, 68])
    plain, rounded = (
        Policy(load_base(quantised_models["llama"], exact=True, hold="as-in-file", served=on), rank=4, alpha=8)
        for on in (False, True)
    )
    apart = plain.response_logprobs("base", [turn])[0] - rounded.response_logprobs("base", [turn])[0]
    assert 0 < apart.abs().max() < 0.5
