"""Tiny models with random weights, made on the spot: they load, answer nonsense and can be trained in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGUFWriter

BLOCKS, WIDTH, HEADS, HEADS_KV, INNER, VOCABULARY = 3, 64, 4, 2, 96, 259


def byte_letters() -> list[str]:
    """GPT-2's visible letter for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(byte if byte in plain else 256 + sum(b not in plain for b in range(byte))) for byte in range(256)]


WINDOW = 24
"""How far gemma3's other blocks look back here: less than the tests' texts are long."""


def write_tiny(path: Path, architecture: str, *, rope_factors: bool = False, name: str = "tiny") -> Path:
    """A random float32 model with a byte tokenizer.

    `architecture`: llama (tied), qwen2 (biases, own output), qwen3 (norms of q and k, heads of a width of their own),
    gemma3 (the same, more norms, windows, scaled embedding; seven blocks, the sixth of which sees everything).
    """
    blocks = 7 if architecture == "gemma3" else BLOCKS
    head = WIDTH // HEADS * (2 if architecture in ("qwen3", "gemma3") else 1)
    random = np.random.default_rng(7)
    writer = GGUFWriter(path, architecture)
    writer.add_type("model")
    writer.add_name(name)
    writer.add_block_count(blocks)
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS_KV)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(head)
    if head != WIDTH // HEADS:
        writer.add_key_length(head)
        writer.add_value_length(head)
    if architecture == "gemma3":
        writer.add_sliding_window(WINDOW)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*byte_letters(), "ab", "<|end|>", "<|pad|>"])
    writer.add_token_types([1] * 257 + [3, 3])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(257)
    writer.add_eos_token_id(257)
    writer.add_add_bos_token(False)

    def add(tensor: str, *shape: int, size: float = 0.15, around: float = 0.0) -> None:
        writer.add_tensor(tensor, (random.standard_normal(shape) * size + around).astype(np.float32))

    add("token_embd.weight", VOCABULARY, WIDTH, size=0.2)
    add("output_norm.weight", WIDTH, size=0.1, around=1.0)
    if rope_factors:
        writer.add_tensor("rope_freqs.weight", np.linspace(1, 4, WIDTH // HEADS // 2, dtype=np.float32))
    if architecture == "qwen2":
        add("output.weight", VOCABULARY, WIDTH, size=0.2)
    for block in range(blocks):
        key_width = head * HEADS_KV
        for part, rows, columns in (
            ("attn_q", head * HEADS, WIDTH),
            ("attn_k", key_width, WIDTH),
            ("attn_v", key_width, WIDTH),
            ("attn_output", WIDTH, head * HEADS),
            ("ffn_gate", INNER, WIDTH),
            ("ffn_up", INNER, WIDTH),
            ("ffn_down", WIDTH, INNER),
        ):
            add(f"blk.{block}.{part}.weight", rows, columns)
            if architecture == "qwen2" and part in ("attn_q", "attn_k", "attn_v"):
                add(f"blk.{block}.{part}.bias", rows)
        more = ("post_attention_norm", "post_ffw_norm") if architecture == "gemma3" else ()
        for part in ("attn_norm", "ffn_norm", *more):
            add(f"blk.{block}.{part}.weight", WIDTH, size=0.1, around=1.0)
        if architecture in ("qwen3", "gemma3"):
            for part in ("attn_q_norm", "attn_k_norm"):
                add(f"blk.{block}.{part}.weight", head, size=0.1, around=1.0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
