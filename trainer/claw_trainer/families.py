"""What sets the families of models apart: their tensors' names, their norms, their transformers classes.

Sources: llama.cpp's conversion (convert_hf_to_gguf.py) and its graphs (src/models), transformers' modeling files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from claw_local.adapters.gguf import MODULES

if TYPE_CHECKING:
    from .weights import GgufFile

Build = Callable[[Any], Any]

_COMMON = {gguf: transformers for transformers, gguf in MODULES.items()} | {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_QK_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
BLOCK_NAMES: dict[str, dict[str, str]] = {
    "llama": _COMMON,
    "qwen2": _COMMON,
    "qwen3": _COMMON | _QK_NORMS,
    "gemma3": _COMMON
    | _QK_NORMS
    | {
        "post_attention_norm": "post_attention_layernorm",
        "ffn_norm": "pre_feedforward_layernorm",
        "post_ffw_norm": "post_feedforward_layernorm",
    },
}
"""For each architecture, the parts of a block: in GGUF, in transformers."""

GEMMA_LOCAL_THETA = 10_000.0
"""Base of the rotary frequencies in gemma3's blocks that look back a window only; llama.cpp's constant."""
GEMMA_PATTERN = 6
"""Every sixth block of gemma3 looks back over everything."""
GEMMA_27B_BLOCKS = 62
"""The size of gemma3 that divides the scores by its width per head, not by the heads' own."""


def norms_are_one_less(architecture: str) -> bool:
    """Whether transformers keeps a norm's weight w where GGUF keeps 1 + w."""
    return architecture == "gemma3"


def configure(file: GgufFile, values: dict[str, Any]) -> tuple[Any, Build]:
    """The transformers configuration and model class for a file.

    Args:
        values: what all families have in common, as `LlamaConfig` names it.

    Raises:
        ModelError: the file lacks a number that its family needs.
    """
    # from the modules themselves: the package's front door imports far more
    if file.architecture == "qwen2":
        from transformers.models.qwen2.modeling_qwen2 import Qwen2Config, Qwen2ForCausalLM

        return Qwen2Config(**values), Qwen2ForCausalLM
    if file.architecture == "qwen3":
        from transformers.models.qwen3.modeling_qwen3 import Qwen3Config, Qwen3ForCausalLM

        return Qwen3Config(**values), Qwen3ForCausalLM
    if file.architecture == "gemma3":
        from transformers.models.gemma3.modeling_gemma3 import Gemma3ForCausalLM, Gemma3TextConfig

        return Gemma3TextConfig(**values | _gemma3(file, values)), Gemma3ForCausalLM
    from transformers.models.llama.modeling_llama import LlamaConfig, LlamaForCausalLM

    return LlamaConfig(**values), LlamaForCausalLM


def _gemma3(file: GgufFile, values: dict[str, Any]) -> dict[str, Any]:
    blocks, window = values["num_hidden_layers"], file.count("attention.sliding_window", 0)
    wide = [not window or (block + 1) % GEMMA_PATTERN == 0 for block in range(blocks)]
    per_head = values["hidden_size"] // values["num_attention_heads"]
    return {
        "layer_types": ["full_attention" if one else "sliding_attention" for one in wide],
        "sliding_window": window or None,
        "rope_parameters": {
            "full_attention": values["rope_parameters"],
            "sliding_attention": {
                "rope_type": "default",
                "rope_theta": file.number("rope.freq_base_swa", GEMMA_LOCAL_THETA),
            },
        },
        "query_pre_attn_scalar": per_head if blocks == GEMMA_27B_BLOCKS else values["head_dim"],
        "pad_token_id": None,
    }


def finish(model: Any) -> None:
    """Fill what no file stores and a model built without storage lacks, but for the rotary frequencies."""
    embedding = model.model.embed_tokens
    if hasattr(embedding, "embed_scale"):
        embedding.embed_scale = torch.tensor(embedding.scalar_embed_scale)
