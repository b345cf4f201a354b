"""Where everything stands in a merged model's file, and the bytes before its tensors. It must never read a weight.

Source: the GGUF specification: header, metadata, list of tensors, then their data at multiples of the alignment.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from math import prod
from pathlib import Path

from ..engine.gguf_file import BLOCKS, GgufHeader, GgufTensor
from ..errors import AdapterError
from ..language import _
from . import blocks

QUANTS: dict[str, tuple[int, int]] = {
    "f32": (0, 0),
    "f16": (1, 1),
    "bf16": (30, 32),
    "q8_0": (8, 7),
    "q6_k": (14, 18),
    "q5_k": (13, 17),
    "q5_1": (7, 9),
    "q5_0": (6, 8),
    "q4_k": (12, 15),
    "q4_1": (3, 3),
    "q4_0": (2, 2),
    "iq4_nl": (20, 25),
    "q3_k": (11, 12),
    "q2_k": (10, 10),
}
"""Name of a type -> (the ggml type, `general.file_type` of a file that is mostly of it)."""

INSTEAD = {10: 2, 11: 2, 12: 6, 13: 7, 14: 8, 20: 2}
"""What takes the place of a type whose blocks are longer than a row can be cut into; as llama.cpp's own tool does."""

FILE_TYPE = "general.file_type"


@dataclass(frozen=True)
class Place:
    """One tensor in the new file: its ggml type, its first byte counted from where data begins, its bytes."""

    name: str
    type: int
    offset: int
    size: int


@dataclass(frozen=True)
class Layout:
    """The new file: the bytes before the tensors, the tensors in order, and the size of it all."""

    head: bytes
    places: tuple[Place, ...]
    size: int

    @property
    def types(self) -> dict[str, int]:
        """How many tensors there are of each type."""
        return dict(Counter(blocks.type_name(place.type) for place in self.places))


def lay_out(base: Path, header: GgufHeader, quant: str, changed: Collection[str]) -> Layout:
    """Lay out the new file.

    Args:
        quant: type of all matrices, as in `QUANTS`; "": each keeps its own, and every byte before the data stays.
        changed: weights that are made again.

    Raises:
        AdapterError: there is no such type.
        OSError: the base cannot be read.
    """
    quant = quant.strip().lower()
    if quant and quant not in QUANTS:
        raise AdapterError(
            _(
                "There is no type {quant!r} to write weights in. Those there are: {quants}.",
                quant=quant,
                quants=", ".join(QUANTS),
            )
        )
    in_order = sorted(header.tensors.items(), key=lambda item: item[1].offset)
    with base.open("rb") as file:
        head = file.read(header.data_start)
    types = {name: _type(name, tensor, quant) for name, tensor in in_order}
    if all(types[name] == tensor.type for name, tensor in in_order):
        places = tuple(Place(name, tensor.type, tensor.offset, tensor.size or 0) for name, tensor in in_order)
        return Layout(head, places, header.file_size)
    places_made, end = [], 0
    for name, tensor in in_order:
        block, block_bytes = BLOCKS[types[name]]
        size = prod(tensor.shape) // block * block_bytes
        places_made.append(Place(name, types[name], end, size))
        end = _up(end + size, header.alignment)
    head = _head(head[: header.values_end], header, {place.name: place for place in places_made}, quant)
    return Layout(head, tuple(places_made), len(head) + end)


def _type(name: str, tensor: GgufTensor, quant: str) -> int:
    """The type a tensor is to have: matrices the one that is wished for, as far as their rows can be cut into it."""
    is_matrix = name.endswith(".weight") and len(tensor.shape) >= 2 and min(tensor.shape[:2]) > 1
    if not quant or not is_matrix or "ffn_gate_inp" in name or "_norm" in name:
        return tensor.type
    kind = QUANTS[quant][0]
    if tensor.shape[0] % BLOCKS[kind][0]:
        kind = INSTEAD.get(kind, 1)
    return kind if tensor.shape[0] % BLOCKS[kind][0] == 0 else 1


def _head(values: bytes, header: GgufHeader, places: dict[str, Place], quant: str) -> bytes:
    """The metadata as it is but for `general.file_type`, and the list of tensors as it is now to be."""
    made = bytearray(values)
    if FILE_TYPE in header.places:
        struct.pack_into("<I", made, header.places[FILE_TYPE], QUANTS[quant][1])
    for name, tensor in header.tensors.items():
        written = name.encode()
        made += struct.pack("<Q", len(written)) + written
        made += struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
        made += struct.pack("<IQ", places[name].type, places[name].offset)
    return bytes(made) + bytes(_up(len(made), header.alignment) - len(made))


def _up(count: int, step: int) -> int:
    return -(-count // step) * step
