"""A plain forward pass over padded batches, for long trainings of a small llama: torch can compile it into few loops.

`Policy` computes the same through transformers and PEFT, operation by operation; on a processor most of a small model's
time goes into those. It must never know what is trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from .policy import ADAPTER, Policy

BUCKETS = (32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512)
"""Lengths to which batches are padded: each shape is compiled once."""
BATCH_TOKENS = 1152
"""Tokens of one batch, padding included."""


def bucket_of(tokens: int) -> int:
    """The length a sequence is padded to."""
    return next((size for size in BUCKETS if tokens <= size), tokens)


def batch_of(bucket: int) -> int:
    """Sequences of that length in a batch."""
    return max(1, BATCH_TOKENS // bucket)


class PaddedLlama:
    """The policy's own weights, LoRA included, behind another forward pass. Padding stands at the end.

    Args:
        policy: of the architecture llama; its LoRA is trained through this.
        compiled: let torch compile the blocks, which needs a C++ compiler.

    Raises:
        ValueError: another architecture.
    """

    def __init__(self, policy: Policy, *, compiled: bool = False) -> None:
        if policy.base.architecture != "llama":
            raise ValueError(f"no padded forward pass for the architecture {policy.base.architecture}")
        self._model = policy.base.model
        self._heads = int(self._model.config.num_attention_heads)
        self._kv_heads = int(self._model.config.num_key_value_heads)
        self._epsilon = float(self._model.config.rms_norm_eps)
        self._compiled = compiled
        self._block: Any = self._plain_block
        if compiled:
            torch._dynamo.config.recompile_limit = 2 * len(BUCKETS)
            self._block = torch.compile(self._plain_block, dynamic=False)

    def last_hidden(self, sequences: Sequence[Sequence[int]]) -> torch.Tensor:
        """[B, D] last hidden states, after the final norm, at each sequence's last token.

        Args:
            sequences: [B] token ids, of one bucket.
        """
        length = bucket_of(max(len(sequence) for sequence in sequences))
        # Compiled, each shape costs half a minute: an incomplete batch is filled up.
        rows = max(len(sequences), batch_of(length)) if self._compiled else len(sequences)
        token_ids = torch.zeros(rows, length, dtype=torch.long)
        for row, sequence in enumerate(sequences):
            token_ids[row, : len(sequence)] = torch.tensor(sequence)
        device = self._model.model.embed_tokens.weight.device
        states = self._model.model.embed_tokens(token_ids.to(device))  # [B, T, D]
        angles = torch.outer(
            torch.arange(length, device=device).float(), self._model.model.rotary_emb.inv_freq
        )  # [T, d/2]
        angles = torch.cat((angles, angles), -1)  # [T, d]
        cos, sin = angles.cos().to(states.dtype), angles.sin().to(states.dtype)
        mask = torch.full((length, length), float("-inf"), device=device).triu(
            1
        )  # [T, T]; causal, so that padding is never seen
        for layer in self._model.model.layers:
            states = self._block(states, layer, cos, sin, mask)
        last = torch.tensor([len(sequence) - 1 for sequence in sequences], device=device)
        rows_of = torch.arange(len(sequences), device=device)
        return self._norm(states[rows_of, last], self._model.model.norm.weight)

    def logits(self, hidden: torch.Tensor, token_ids: Sequence[int]) -> torch.Tensor:
        """[B, C] float32 logits of C tokens from hidden states [B, D]."""
        return F.linear(hidden, self._model.lm_head.weight[torch.tensor(token_ids, device=hidden.device)]).float()

    def _plain_block(
        self, states: torch.Tensor, layer: Any, cos: torch.Tensor, sin: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        attention, mlp = layer.self_attn, layer.mlp
        batch, length, width = states.shape
        normed = self._norm(states, layer.input_layernorm.weight)

        def split(projected: torch.Tensor, heads: int) -> torch.Tensor:
            return projected.view(batch, length, heads, -1).transpose(1, 2)  # [B, H, T, d]

        query = _rotate(split(_linear(normed, attention.q_proj), self._heads), cos, sin)
        key = _rotate(split(_linear(normed, attention.k_proj), self._kv_heads), cos, sin)
        value = split(_linear(normed, attention.v_proj), self._kv_heads)
        groups = self._heads // self._kv_heads
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        scores = (query @ key.transpose(-1, -2)).float() * query.shape[-1] ** -0.5 + mask  # [B, H, T, T]
        mixed = (scores.softmax(-1).to(value.dtype) @ value).transpose(1, 2).reshape(batch, length, width)
        states = states + _linear(mixed, attention.o_proj)
        normed = self._norm(states, layer.post_attention_layernorm.weight)
        gated = F.silu(_linear(normed, mlp.gate_proj)) * _linear(normed, mlp.up_proj)
        return states + _linear(gated, mlp.down_proj)

    def _norm(self, states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = states.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self._epsilon)
        return scaled.to(states.dtype) * weight


def _linear(states: torch.Tensor, module: Any) -> torch.Tensor:
    """x Wᵀ + s · (x Aᵀ) Bᵀ"""
    low = F.linear(states, module.lora_A[ADAPTER].weight.to(states.dtype)) * module.scaling[ADAPTER]  # [B, T, r]
    update = F.linear(low, module.lora_B[ADAPTER].weight.to(states.dtype))
    return F.linear(states, module.base_layer.weight) + update


def _rotate(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = states.shape[-1] // 2
    turned = torch.cat((-states[..., half:], states[..., :half]), -1)
    return states * cos + turned * sin
