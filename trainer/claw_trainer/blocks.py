"""The blocks that GGUF files keep weights in, made into numbers by torch. It must never know about models or layers.

Layouts: ggml's block structures (ggml-common.h) as the gguf package undoes them; the results are equal to its, bit for
bit. A matrix is [rows, bytes of a row]; no block reaches over the end of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from claw_local.engine.gguf_file import BLOCKS

PIECE_VALUES = 1 << 18
"""Values made at once: what lies between them and the bytes stays in the processor's cache."""


@dataclass(frozen=True)
class Kind:
    """One way to keep weights.

    Attributes:
        name: as ggml calls it.
        values, size: values of a block, and its bytes.
        fill: makes [n, size] bytes into [n, values] float32, which are given to be filled.
        rounding: how llama.cpp rounds what is multiplied with such weights on a processor (`served.ROUNDINGS`).
    """

    name: str
    values: int
    size: int
    fill: Callable[[torch.Tensor, torch.Tensor], None]
    rounding: str

    def row_values(self, row_bytes: int) -> int:
        """Values of a row of so many bytes."""
        return row_bytes // self.size * self.values


def dequantise(stored: torch.Tensor, kind: Kind) -> torch.Tensor:
    """[rows, bytes of a row] uint8 -> [rows, values of a row] float32."""
    rows, row_bytes = stored.shape
    blocks = stored.reshape(-1, kind.size)  # [n, bytes of a block]
    values = torch.empty(blocks.shape[0], kind.values, device=stored.device)  # [n, values of a block]
    stride = max(1, PIECE_VALUES // kind.values)
    for at in range(0, blocks.shape[0], stride):
        kind.fill(blocks[at : at + stride], values[at : at + stride])
    return values.view(rows, kind.row_values(row_bytes))


def minima(stored: torch.Tensor, kind: Kind) -> torch.Tensor:
    """[rows, bytes of a row] of Q4_1 or Q5_1 -> [rows, blocks of a row]: what is added to each value of a block."""
    return _half(stored.reshape(stored.shape[0], -1, kind.size), 2)[..., 0]


def _half(blocks: torch.Tensor, at: int) -> torch.Tensor:
    """[..., bytes] -> [..., 1] the half-precision number at a byte, in float32."""
    return blocks[..., at : at + 2].contiguous().view(torch.float16).float()


def _nibbles(packed: torch.Tensor, values: torch.Tensor) -> None:
    """[..., b] bytes -> [..., 2, b]: the low halves, then the high ones."""
    values[..., 0, :] = packed & 15
    values[..., 1, :] = packed >> 4


def _bits(packed: torch.Tensor, width: int) -> torch.Tensor:
    """[..., b] bytes -> [..., 8 / width, b]: their parts of `width` bits, the lowest first."""
    shifts = torch.arange(0, 8, width, dtype=torch.uint8, device=packed.device)
    return (packed[..., None, :] >> shifts[:, None]) & ((1 << width) - 1)


def _fifth_bits(blocks: torch.Tensor, at: int) -> torch.Tensor:
    """[n, 32] 0 or 16: the highest bit of each value of Q5_0 and Q5_1, four bytes from `at`."""
    return _bits(blocks[:, at : at + 4], 1).transpose(1, 2).reshape(-1, 32) << 4


def _scales_and_minima(blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[n, bytes] -> twice [n, 8, 1]: factor and minimum of each 32 values of Q4_K and Q5_K."""
    packed = blocks[:, 4:16].reshape(-1, 3, 4)
    low, middle, high = packed[:, 0], packed[:, 1], packed[:, 2]  # [n, 4]
    scales = torch.cat([low & 63, (high & 15) | ((low >> 2) & 48)], 1)  # [n, 8]
    lowest = torch.cat([middle & 63, (high >> 4) | ((middle >> 2) & 48)], 1)  # [n, 8]
    return (_half(blocks, 0) * scales.float())[..., None], (_half(blocks, 2) * lowest.float())[..., None]


def _f32(blocks: torch.Tensor, values: torch.Tensor) -> None:
    values.copy_(blocks.contiguous().view(torch.float32))


def _f16(blocks: torch.Tensor, values: torch.Tensor) -> None:
    values.copy_(blocks.contiguous().view(torch.float16))


def _bf16(blocks: torch.Tensor, values: torch.Tensor) -> None:
    values.copy_(blocks.contiguous().view(torch.bfloat16))


def _q4_0(blocks: torch.Tensor, values: torch.Tensor) -> None:
    _nibbles(blocks[:, 2:], values.view(-1, 2, 16))
    values.sub_(8).mul_(_half(blocks, 0))


def _q4_1(blocks: torch.Tensor, values: torch.Tensor) -> None:
    _nibbles(blocks[:, 4:], values.view(-1, 2, 16))
    values.mul_(_half(blocks, 0)).add_(_half(blocks, 2))


def _q5_0(blocks: torch.Tensor, values: torch.Tensor) -> None:
    _nibbles(blocks[:, 6:], values.view(-1, 2, 16))
    values.add_(_fifth_bits(blocks, 2)).sub_(16).mul_(_half(blocks, 0))


def _q5_1(blocks: torch.Tensor, values: torch.Tensor) -> None:
    _nibbles(blocks[:, 8:], values.view(-1, 2, 16))
    values.add_(_fifth_bits(blocks, 4)).mul_(_half(blocks, 0)).add_(_half(blocks, 2))


def _q8_0(blocks: torch.Tensor, values: torch.Tensor) -> None:
    values.copy_(blocks[:, 2:].view(torch.int8)).mul_(_half(blocks, 0))


def _q4_k(blocks: torch.Tensor, values: torch.Tensor) -> None:
    scales, lowest = _scales_and_minima(blocks)
    _nibbles(blocks[:, 16:].view(-1, 4, 32), values.view(-1, 4, 2, 32))
    values.view(-1, 8, 32).mul_(scales).sub_(lowest)


def _q5_k(blocks: torch.Tensor, values: torch.Tensor) -> None:
    scales, lowest = _scales_and_minima(blocks)
    _nibbles(blocks[:, 48:].view(-1, 4, 32), values.view(-1, 4, 2, 32))
    values.view(-1, 8, 32).add_(_bits(blocks[:, 16:48], 1) << 4).mul_(scales).sub_(lowest)


def _q6_k(blocks: torch.Tensor, values: torch.Tensor) -> None:
    scales = blocks[:, 192:208].view(torch.int8).float() * _half(blocks, 208)  # [n, 16]
    _nibbles(blocks[:, :128].view(-1, 2, 64), values.view(-1, 2, 2, 64))
    high = _bits(blocks[:, 128:192].view(-1, 2, 32), 2)  # [n, 2, 4, 32]
    values.view(-1, 2, 4, 32).add_(high << 4)
    values.sub_(32).view(-1, 16, 16).mul_(scales[..., None])


def _kind(number: int, name: str, fill: Callable[[torch.Tensor, torch.Tensor], None], rounding: str) -> Kind:
    return Kind(name, *BLOCKS[number], fill, rounding)


KINDS: dict[int, Kind] = {
    0: _kind(0, "F32", _f32, "none"),
    1: _kind(1, "F16", _f16, "f16"),
    2: _kind(2, "Q4_0", _q4_0, "q8_0"),
    3: _kind(3, "Q4_1", _q4_1, "q8_1"),
    6: _kind(6, "Q5_0", _q5_0, "q8_0"),
    7: _kind(7, "Q5_1", _q5_1, "q8_1"),
    8: _kind(8, "Q8_0", _q8_0, "q8_0"),
    12: _kind(12, "Q4_K", _q4_k, "q8_K"),
    13: _kind(13, "Q5_K", _q5_k, "q8_K"),
    14: _kind(14, "Q6_K", _q6_k, "q8_K"),
    30: _kind(30, "BF16", _bf16, "bf16"),
}
"""By ggml's number of the type; what is not here is dequantised when the model is loaded."""
