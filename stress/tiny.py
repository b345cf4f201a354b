"""A tiny llama with random weights, made on the spot: it loads at once, answers nonsense, can be trained in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGUFWriter

BLOCKS, WIDTH, HEADS, HEADS_KV, INNER, CONTEXT = 3, 64, 4, 2, 96, 512
SHAPES = {
    "attn_q": (WIDTH, WIDTH),
    "attn_k": (WIDTH // HEADS * HEADS_KV, WIDTH),
    "attn_v": (WIDTH // HEADS * HEADS_KV, WIDTH),
    "attn_output": (WIDTH, WIDTH),
    "ffn_gate": (INNER, WIDTH),
    "ffn_up": (INNER, WIDTH),
    "ffn_down": (WIDTH, INNER),
}
"""Rows and columns of a block's linear layers, by their names in GGUF."""


def write_tiny(path: Path, *, context: int = CONTEXT) -> Path:
    """Write the model: float32, one token for each byte, two marks."""
    random = np.random.default_rng(7)
    letters = _letters()
    writer = GGUFWriter(path, "llama")
    writer.add_type("model")
    writer.add_name("tiny")
    writer.add_block_count(BLOCKS)
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS_KV)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(letters) + 3)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*letters, "ab", "<|end|>", "<|pad|>"])
    writer.add_token_types([1] * (len(letters) + 1) + [3, 3])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(len(letters) + 1)
    writer.add_eos_token_id(len(letters) + 1)
    writer.add_add_bos_token(False)
    tensors = {"token_embd.weight": random.standard_normal((len(letters) + 3, WIDTH)) * 0.2}
    tensors["output_norm.weight"] = 1 + random.standard_normal(WIDTH) * 0.1
    for block in range(BLOCKS):
        for name, shape in SHAPES.items():
            tensors[f"blk.{block}.{name}.weight"] = random.standard_normal(shape) * 0.15
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{block}.{name}.weight"] = 1 + random.standard_normal(WIDTH) * 0.1
    for name, values in tensors.items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _letters() -> list[str]:
    """GPT-2's visible letter for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(byte if byte in plain else 256 + sum(b not in plain for b in range(byte))) for byte in range(256)]
