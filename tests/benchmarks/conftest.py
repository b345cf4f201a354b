"""A LoRA that the benchmark's tests put into use."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np


def small_lora(path: Path) -> Path:
    """A random LoRA for the first layer of SmolLM2-135M."""
    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 4.0)
    writer.add_tensor("blk.0.attn_v.weight.lora_a", random.normal(0, 0.1, (4, 576)).astype(np.float32))
    writer.add_tensor("blk.0.attn_v.weight.lora_b", random.normal(0, 0.1, (192, 4)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
