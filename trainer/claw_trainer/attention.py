"""Attention inside each of several sequences that lie end to end, with no padding. It must never know adapters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from . import served

ATTENTION = "claw_packed"
"""Its name among those of transformers."""


def packed_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    scaling: float,
    segments: Sequence[int],
    sliding_window: int | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Causal attention inside each of several sequences laid end to end.

    Args:
        query: [1, H, N, d]
        key, value: [1, H_kv, N, d]
        attention_mask: None; the lengths say it all.
        scaling: factor of the scores. Whether to round as llama.cpp does is in the module's configuration.
        segments: [B] lengths, summing to N.
        sliding_window: how many tokens, itself included, a token sees; None is all before it.

    Returns:
        [1, N, H, d] and None (no attention weights).
    """
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)  # [1, H, N, d]
    lengths = list(segments)
    attend = served.attention if module.config.rounds_as_served else _causal
    pieces = [
        attend(q, k, v, scaling, sliding_window)
        for q, k, v in zip(*(torch.split(states, lengths, 2) for states in (query, key, value)), strict=True)
    ]
    return torch.cat(pieces, dim=2).transpose(1, 2), None


def _causal(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float, window: int | None
) -> torch.Tensor:
    """[1, H, T, d] each -> [1, H, T, d]."""
    length = query.shape[2]
    if window is None or length <= window:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling)
    seen = served.seen(length, window, query.device)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=seen, scale=scaling)
