"""The file's own blocks: made into numbers as the gguf package does, and used without being kept as numbers."""

from __future__ import annotations

import claw_trainer  # isort: skip  # noqa: F401  before torch: see claw_trainer.cpu

import gguf
import numpy as np
import pytest
import torch

from claw_trainer import as_in_file
from claw_trainer.as_in_file import BlockEmbedding, BlockLinear
from claw_trainer.blocks import KINDS, Kind, dequantise
from claw_trainer.served import ROUNDINGS

QUANTISED = [number for number, kind in KINDS.items() if kind.name[0] == "Q"]
HALVES = {"Q4_1": 2, "Q5_1": 2, "Q4_K": 2, "Q5_K": 2}
"""Kinds whose blocks begin with more than one half-precision number."""


def random_blocks(kind: Kind, rows: int, blocks: int, seed: int = 0) -> np.ndarray:
    """[rows, bytes] any bytes, but for factors that are of a usual size."""
    random = np.random.default_rng(seed)
    stored = random.integers(0, 256, (rows, blocks, kind.size), dtype=np.uint8)
    count = HALVES.get(kind.name, 1)
    factors = (random.standard_normal((rows, blocks, count)) * 0.01).astype(np.float16).view(np.uint8)
    at = kind.size - 2 if kind.name == "Q6_K" else 0
    stored[..., at : at + 2 * count] = factors
    return stored.reshape(rows, -1)


@pytest.mark.parametrize("number", QUANTISED, ids=lambda number: KINDS[number].name)
def test_blocks_become_the_same_bits_as_with_the_gguf_package(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from claw_trainer import blocks

    kind = KINDS[number]
    stored = random_blocks(kind, 7, 3)
    expected = gguf.quants.dequantize(stored, gguf.GGMLQuantizationType(number))
    found = dequantise(torch.from_numpy(stored), kind).numpy()
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))
    monkeypatch.setattr(blocks, "PIECE_VALUES", 2 * kind.values)  # in many pieces, the last one smaller
    assert np.array_equal(dequantise(torch.from_numpy(stored), kind).numpy(), expected)


def test_numbers_that_are_not_quantised_stay_what_they_are() -> None:
    values = torch.randn(3, 8)
    for number, dtype in ((0, torch.float32), (1, torch.float16), (30, torch.bfloat16)):
        stored = values.to(dtype).view(torch.uint8)
        assert torch.equal(dequantise(stored, KINDS[number]), values.to(dtype).float())


@pytest.mark.parametrize("number", KINDS, ids=lambda number: KINDS[number].name)
def test_a_layer_computes_and_differentiates_as_the_dequantised_one(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(number)
    kind = KINDS[number]
    stored = random_blocks(kind, 10, 2) if kind.name[0] == "Q" else random_plain(kind)
    monkeypatch.setattr(as_in_file, "CHUNK_VALUES", 3 * stored.shape[1] // kind.size * kind.values)  # three rows each
    layer = BlockLinear(torch.from_numpy(stored), kind, bias=True)
    layer.bias = torch.nn.Parameter(torch.randn(10), requires_grad=False)
    weight = dequantise(torch.from_numpy(stored), kind)
    mine = torch.randn(2, 4, layer.in_features, requires_grad=True)
    plain = mine.detach().clone().requires_grad_()
    out = layer(mine)
    expected = torch.nn.functional.linear(plain, weight, layer.bias)
    # Sums in another order differ by the rounding of their largest terms, whatever is left of them.
    rounding = 1e-6 * float((plain.abs() @ weight.abs().T).max())
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=rounding)
    slope = torch.randn_like(out)
    out.backward(slope)
    expected.backward(slope)
    rounding = 1e-6 * float((slope.abs() @ weight.abs()).max())
    torch.testing.assert_close(mine.grad, plain.grad, rtol=1e-5, atol=rounding)
    assert layer.weight.grad is None


def random_plain(kind: Kind) -> np.ndarray:
    values = torch.randn(10, 2 * 32)
    return (
        values.to({"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[kind.name])
        .view(torch.uint8)
        .numpy()
    )


def test_between_forward_and_backward_no_number_of_the_weight_is_kept() -> None:
    kind = KINDS[12]
    layer = BlockLinear(torch.from_numpy(random_blocks(kind, 64, 4)), kind, bias=False)
    states = torch.randn(5, layer.in_features, requires_grad=True)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, lambda t: t):
        out = layer(states)
    assert sum(kept) == 0
    out.sum().backward()
    assert states.grad is not None and states.grad.abs().sum() > 0


def test_an_embedding_looks_up_rows() -> None:
    kind = KINDS[8]
    stored = torch.from_numpy(random_blocks(kind, 9, 2))
    token_ids = torch.tensor([[3, 0, 3], [8, 1, 2]])
    found = BlockEmbedding(stored, kind, torch.float32)(token_ids)
    assert torch.equal(found, dequantise(stored, kind)[token_ids])


@pytest.mark.parametrize("name", ["q8_0", "q8_1", "q8_K"])
def test_eight_bits_are_near_and_zeros_stay_zeros(name: str) -> None:
    values = torch.randn(4, 512)
    values[1] = 0
    rounded, _ = ROUNDINGS[name](values)
    block = 256 if name == "q8_K" else 32
    most = values.view(4, -1, block).abs().amax(2, keepdim=True)
    off = (rounded - values).view(4, -1, block).abs()
    assert (off <= most * (0.5 / 127 + 2**-10)).all()
    assert (rounded[1] == 0).all()
    assert 0 < off.mean() < 0.01


def test_eight_bits_are_those_of_the_gguf_package() -> None:
    values = torch.randn(6, 96)
    kind = gguf.GGMLQuantizationType.Q8_0
    expected = gguf.quants.dequantize(gguf.quants.quantize(values.numpy(), kind), kind)
    torch.testing.assert_close(ROUNDINGS["q8_0"](values)[0].numpy(), expected, rtol=0, atol=0)


@pytest.mark.parametrize("number", [3, 7])
def test_the_sums_of_q8_1_enter_with_the_minimum(number: int) -> None:
    """llama.cpp adds minimum x sum, where the sum was rounded to half precision on its own."""
    torch.set_float32_matmul_precision("highest")
    kind = KINDS[number]
    stored = torch.from_numpy(random_blocks(kind, 6, 3))
    states = torch.randn(2, 96)
    found = BlockLinear(stored, kind, bias=False, served=True)(states)
    raw = stored.view(6, 3, kind.size)
    lowest = raw[..., 2:4].contiguous().view(torch.float16).double()[..., 0]  # [6, 3]
    factor = dequantise(stored, kind).double().view(6, 3, 32) - lowest[..., None]
    blocks = states.view(2, 3, 32)
    unit = blocks.abs().amax(2) / 127  # [2, 3]
    whole = (blocks * (127 / blocks.abs().amax(2, keepdim=True))).round().double()
    sums = (unit * whole.sum(2).float()).half().double()  # [2, 3]
    expected = torch.einsum("nbi,obi->no", whole * unit.half().double()[..., None], factor) + sums @ lowest.T
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)


def test_rounding_lets_gradients_through_unchanged() -> None:
    kind = KINDS[2]
    stored = torch.from_numpy(random_blocks(kind, 6, 2))
    states = torch.randn(3, 64, requires_grad=True)
    BlockLinear(stored, kind, bias=False, served=True)(states).sum().backward()
    expected = dequantise(stored, kind).sum(0).expand(3, -1)
    torch.testing.assert_close(states.grad, expected, rtol=1e-4, atol=1e-6)
