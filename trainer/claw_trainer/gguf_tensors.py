"""A model's GGUF file for the trainer: its header, and its tensors one by one from the mapped file.

It must never know about transformers or adapters.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from claw_local.engine.gguf_file import BLOCKS, GgufHeader
from claw_local.engine.models import check_model
from claw_local.errors import ModelError

from .blocks import KINDS, Kind

CHUNK_VALUES = 1 << 18
"""Values dequantised at once: the temporaries stay in the processor's cache. Row by row it takes four times as long."""


class GgufFile:
    """A model's GGUF file: its header, and its tensors mapped from disk."""

    def __init__(self, path: Path) -> None:
        """Raises ModelError if the file is not a whole model."""
        self.path = path
        self.header: GgufHeader = check_model(path, on_gpu=True)  # the file itself is not loaded; see _check_memory
        self.architecture = self.header.text("general.architecture")
        # Private, and never written: torch would not take what is for reading only.
        self._bytes: npt.NDArray[np.uint8] = np.memmap(path, np.uint8, "c")

    def number(self, key: str, default: float | None = None) -> float:
        """A number of this architecture: `number("block_count")` reads `llama.block_count`.

        Raises:
            ModelError: there is no such number and no default.
        """
        value = self.header.metadata.get(f"{self.architecture}.{key}", default)
        if not isinstance(value, int | float):
            raise ModelError(
                f"{self.path.name} does not give {self.architecture}.{key} as one number, and learning needs it. "
                "Chatting may work; to learn, use another model file."
            )
        return value

    def count(self, key: str, default: int | None = None) -> int:
        """The same, as a whole number."""
        return int(self.number(key, default))

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape, rows first, as torch writes it (GGUF has the fastest dimension first)."""
        return self.header.tensors[name].shape[::-1]

    def values(self, name: str) -> npt.NDArray[np.float32]:
        """[shape] a tensor's values, dequantised.

        Raises:
            ModelError: the gguf package cannot undo this quantisation.
        """
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        tensor = self.header.tensors[name]
        stored = self._stored(name)  # [bytes]
        try:
            kind = GGMLQuantizationType(tensor.type)
            block, block_bytes = BLOCKS[tensor.type]
            if kind in (GGMLQuantizationType.F32, GGMLQuantizationType.F16):
                plain = np.float32 if kind == GGMLQuantizationType.F32 else np.float16
                return np.array(stored.view(plain), np.float32).reshape(self.shape(name))
            values = np.empty(self.shape(name), np.float32)
            flat = values.reshape(-1)
            stride = CHUNK_VALUES // block
            for at in range(0, flat.size // block, stride):
                piece = stored[at * block_bytes : (at + stride) * block_bytes]
                flat[at * block : (at + stride) * block] = dequantize(piece.reshape(1, -1), kind)[0]
        except (NotImplementedError, ValueError, KeyError) as error:
            raise ModelError(
                f"Learning cannot undo the quantisation of {name} in {self.path.name} (type {tensor.type}). "
                "Use a file with a common quantisation (Q4_K_M, Q8_0, F16, ...)."
            ) from error
        return values

    def blocks(self, name: str) -> tuple[torch.Tensor, Kind] | None:
        """[rows, bytes of a row] uint8 of a matrix as they are in the mapped file, and what they are.

        None for what is no matrix, or is kept in a way that `blocks` does not know.
        """
        tensor = self.header.tensors[name]
        kind = KINDS.get(tensor.type)
        if kind is None or len(tensor.shape) != 2 or tensor.shape[0] % kind.values:
            return None
        return torch.from_numpy(self._stored(name).reshape(self.shape(name)[0], -1)), kind

    def _stored(self, name: str) -> npt.NDArray[np.uint8]:
        tensor = self.header.tensors[name]
        begin = self.header.data_start + tensor.offset
        return np.asarray(self._bytes[begin : begin + (tensor.size or 0)])  # [bytes]
