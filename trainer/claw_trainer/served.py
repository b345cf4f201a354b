"""What llama.cpp rounds on a processor, in torch: the inputs of matrices to 8 bits, those of attention to 16.

With it, the trainer computes nearly what the sampler computes. Gradients pass as if nothing was rounded. Source: ggml's
quantize_row_q8_0, _q8_1, _q8_K (ggml-cpu), and its products with half-precision keys and values. It must never know
about models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Rounded = tuple[torch.Tensor, torch.Tensor | None]
"""[n, in] rounded values; and of q8_1 [n, in / 32] by how much llama.cpp's sum of a block differs from theirs."""


class _Through(torch.autograd.Function):
    """Rounds to half precision on the way forward, and does nothing on the way back."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor) -> torch.Tensor:
        return values.half().to(values.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def half(values: torch.Tensor) -> torch.Tensor:
    """The same shape, rounded to half precision, with the gradient of the identity."""
    rounded: torch.Tensor = _Through.apply(values)  # type: ignore[no-untyped-call]
    return rounded


def _eight_bits(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[n, in] -> [n, in / 32, 32] whole numbers from -127 to 127, and [n, in / 32, 1] their unit."""
    blocks = values.view(values.shape[0], -1, 32)
    most = blocks.abs().amax(2, keepdim=True)
    inverse = torch.where(most > 0, 127 / most, 0.0)
    return (blocks * inverse).round_(), most / 127


def _q8_0(values: torch.Tensor) -> Rounded:
    whole, unit = _eight_bits(values)
    return (whole * unit.half().float()).view_as(values), None


def _q8_1(values: torch.Tensor) -> Rounded:
    whole, unit = _eight_bits(values)
    sums = whole.sum(2, keepdim=True)  # [n, in / 32, 1]
    stored = unit.half().float()
    off = (unit * sums).half().float() - stored * sums
    return (whole * stored).view_as(values), off[..., 0]


def _q8_k(values: torch.Tensor) -> Rounded:
    blocks = values.view(values.shape[0], -1, 256)
    most = blocks.gather(2, blocks.abs().argmax(2, keepdim=True))  # [n, in / 256, 1], signed
    scale = torch.where(most != 0, -127 / most, 0.0)
    whole = (blocks * scale).round_().clamp_(max=127)
    return (whole * torch.where(most != 0, 1 / scale, 0.0)).view_as(values), None


ROUNDINGS: dict[str, Callable[[torch.Tensor], Rounded]] = {
    "none": lambda values: (values, None),
    "f16": lambda values: (values.half().float(), None),
    "bf16": lambda values: (values.bfloat16().float(), None),
    "q8_0": _q8_0,
    "q8_1": _q8_1,
    "q8_K": _q8_k,
}


def seen(length: int, window: int | None, device: torch.device) -> torch.Tensor:
    """[T, T] whether a query's token sees a key's: itself and those before it, `window` of them at most."""
    places = torch.arange(length, device=device)
    back = places[:, None] - places[None]  # how far the key lies before the query
    return (back >= 0) & (back < (window or length))


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float, window: int | None = None
) -> torch.Tensor:
    """Causal attention as llama.cpp computes it with a half-precision cache: [1, H, T, d] each -> [1, H, T, d]."""
    scores = half(query) @ half(key).transpose(2, 3) * scaling  # [1, H, T, T]
    hidden = ~seen(query.shape[2], window, query.device)
    return half(scores.masked_fill(hidden, float("-inf")).softmax(3)) @ half(value)
