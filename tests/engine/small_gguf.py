"""Small GGUF files that say of themselves what a test needs. They hold no model that could answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFWriter


def write_gguf(path: Path, architecture: str = "llama", *, weights: int = 64, kind: str = "", **numbers: Any) -> Path:
    """A file of `weights` zeros. `numbers`: context_length, file_type."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = GGUFWriter(path, architecture)
    writer.add_name(f"{path.stem} itself")
    if kind:
        writer.add_type(kind)
    if "file_type" in numbers:
        writer.add_file_type(numbers["file_type"])
    writer.add_context_length(numbers.get("context_length", 2048))
    writer.add_block_count(1)
    writer.add_head_count(1)
    writer.add_embedding_length(8)
    writer.add_tensor("token_embd.weight", np.zeros((1, weights), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
