"""Layers that keep a weight in the GGUF file's own blocks and make numbers of it only while they compute.

What is trained against is what is served, bit for bit. The blocks stay in the mapped file, so memory holds them once
for all programs. It must never know about chats or adapters.
"""

from __future__ import annotations

from typing import Any

import torch

from .blocks import Kind, dequantise, minima
from .served import ROUNDINGS

CHUNK_VALUES = 1 << 22
"""Values of a weight that exist at once: 16 MiB."""


class _Product(torch.autograd.Function):
    """x Wᵀ with a frozen W that is dequantised once on the way forward and once on the way back; nothing is kept."""

    @staticmethod
    def forward(ctx: Any, states: torch.Tensor, stored: torch.Tensor, kind: Kind, served: bool) -> torch.Tensor:
        """[n, in] states, [out, bytes] blocks -> [n, out]."""
        ctx.stored, ctx.kind = stored, kind
        states, off = ROUNDINGS[kind.rounding](states.contiguous()) if served else (states, None)
        found = states.new_empty(states.shape[0], stored.shape[0])
        for start, stop in _chunks(stored, kind):
            part = stored[start:stop]
            torch.mm(states, dequantise(part, kind).to(states.dtype).T, out=found[:, start:stop])
            if off is not None:
                found[:, start:stop] += off @ minima(part, kind).T
        return found

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        total = gradient.new_zeros(gradient.shape[0], ctx.kind.row_values(ctx.stored.shape[1]))  # [n, in]
        for start, stop in _chunks(ctx.stored, ctx.kind):
            total.addmm_(gradient[:, start:stop], dequantise(ctx.stored[start:stop], ctx.kind).to(gradient.dtype))
        return total, None, None, None


def _chunks(stored: torch.Tensor, kind: Kind) -> list[tuple[int, int]]:
    rows = max(1, CHUNK_VALUES // kind.row_values(stored.shape[1]))
    return [(start, min(start + rows, stored.shape[0])) for start in range(0, stored.shape[0], rows)]


class BlockLinear(torch.nn.Linear):
    """A linear layer whose `weight` is [out, bytes of a row] uint8 and cannot be trained."""

    def __init__(self, stored: torch.Tensor, kind: Kind, *, bias: bool, served: bool = False) -> None:
        """Args:
        stored: [out, bytes of a row] uint8; it is kept, not copied.
        bias: whether there is one; it is loaded later.
        served: round what comes in as llama.cpp does on a processor, with straight-through gradients.
        """
        super().__init__(kind.row_values(stored.shape[1]), stored.shape[0], bias=bias, device="meta")
        self.weight = torch.nn.Parameter(stored, requires_grad=False)
        self.kind, self.served = kind, served

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """[..., in] -> [..., out]."""
        flat = input.reshape(-1, self.in_features)
        found: torch.Tensor = _Product.apply(flat, self.weight, self.kind, self.served)  # type: ignore[no-untyped-call]
        if self.bias is not None:
            found = found + self.bias
        return found.view(*input.shape[:-1], self.out_features)


class BlockEmbedding(torch.nn.Module):
    """An embedding whose `weight` is [V, bytes of a row] uint8."""

    def __init__(self, stored: torch.Tensor, kind: Kind, dtype: torch.dtype, factor: float = 1.0) -> None:
        """Args:
        stored: [V, bytes of a row] uint8; it is kept, not copied.
        dtype: of what it gives.
        factor: that its values are multiplied with.
        """
        super().__init__()
        self.weight = torch.nn.Parameter(stored, requires_grad=False)
        self.kind, self.dtype, self.factor = kind, dtype, factor

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """[...] token ids -> [..., D]."""
        rows = dequantise(self.weight.index_select(0, token_ids.reshape(-1)), self.kind).to(self.dtype)
        return (rows if self.factor == 1.0 else rows * self.factor).view(*token_ids.shape, -1)


def put(model: Any, name: str, stored: torch.Tensor, kind: Kind, *, dtype: torch.dtype, served: bool) -> None:
    """Replace a linear layer or the embedding of a model, which may still be without storage, by one of these.

    Args:
        name: the weight's, such as `model.layers.0.mlp.up_proj.weight`.
        stored: [out, bytes of a row] uint8.
        dtype: of what an embedding gives.
        served: see `BlockLinear`.
    """
    place = name.removesuffix(".weight")
    plain = model.get_submodule(place)
    if isinstance(plain, torch.nn.Linear):
        model.set_submodule(place, BlockLinear(stored, kind, bias=plain.bias is not None, served=served))
    else:
        factor = float(getattr(plain, "scalar_embed_scale", 1.0))  # gemma's
        model.set_submodule(place, BlockEmbedding(stored, kind, dtype, factor))
