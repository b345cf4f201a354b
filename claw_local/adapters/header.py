"""Reading a GGUF file's header: what the model is and where its tensors lie. It must never know about torch or llama.cpp.

The gguf package's own reader makes numpy views of every vocabulary entry, which takes seconds; here the vocabulary is
stepped over. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
MAX_DIMENSIONS = 4


@dataclass(frozen=True)
class Tensor:
    """Where one tensor lies.

    Attributes:
        shape: rows first, as numpy and torch write it (GGUF itself stores the reverse).
        type: ggml type number (0 = F32, 1 = F16, 3 = Q4_1, ...).
        start, end: byte range in the file.
    """

    name: str
    shape: tuple[int, ...]
    type: int
    start: int
    end: int


@dataclass(frozen=True)
class Header:
    """What a GGUF file says about itself.

    Attributes:
        metadata: scalar and string values by key. Of an array only its length is kept, as an int under the same key.
        tensors: by name.
    """

    path: Path
    metadata: dict[str, str | int | float | bool]
    tensors: dict[str, Tensor]

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", ""))

    def number(self, key: str, default: float | None = None) -> float:
        """A number of this architecture: `number("attention.head_count")` reads `llama.attention.head_count`.

        Raises:
            ModelError: there is no such number, and no default.
        """
        value = self.metadata.get(f"{self.architecture}.{key}", default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ModelError(
                f"{self.path.name} does not say its {self.architecture}.{key}, so it cannot be used for learning. "
                "Use a model file converted by a current llama.cpp."
            )
        return value

    def raw(self, tensor: Tensor) -> npt.NDArray[np.uint8]:
        """[bytes] what is stored of a tensor, still quantised, mapped from the file (nothing is read yet)."""
        import numpy as np

        return np.memmap(self.path, np.uint8, "r", tensor.start, (tensor.end - tensor.start,))


def read_header(path: Path) -> Header:
    """Read what a GGUF file says about itself, in milliseconds.

    Raises:
        ModelError: the file is missing, not GGUF, of an unknown version, or cut short.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != MAGIC:
                raise ModelError(f"{path} is not a GGUF file. Choose a model file whose name ends in .gguf.")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(path, data).header()
    except OSError as error:
        raise ModelError(f"Cannot read {path}: {error.strerror or error}. Choose another model file.") from error
    except (struct.error, UnicodeDecodeError, IndexError, OverflowError) as error:
        raise _cut_short(path) from error


def _cut_short(path: Path) -> ModelError:
    return ModelError(f"{path} is damaged or cut short: its header does not match its length. Download it again.")


class _Reader:
    """Walks through the header once."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path = path
        self.data = data
        self.at = len(MAGIC)

    def header(self) -> Header:
        version = self.scalar("<I")
        if version not in VERSIONS:
            raise ModelError(
                f"{self.path} is GGUF version {version}; versions {VERSIONS[0]} and {VERSIONS[1]} are understood. "
                "Convert the model again with a current llama.cpp."
            )
        tensor_count, key_count = int(self.scalar("<Q")), int(self.scalar("<Q"))
        metadata = {self.string(): self.value(int(self.scalar("<I"))) for _ in range(key_count)}
        described = [self.tensor_description() for _ in range(tensor_count)]
        alignment = int(metadata.get("general.alignment", DEFAULT_ALIGNMENT))
        begin = -(-self.at // alignment) * alignment
        tensors: dict[str, Tensor] = {}
        for name, shape, kind, offset in described:
            start = begin + offset
            end = start + self.stored_bytes(name, shape, kind)
            if end > len(self.data):
                raise _cut_short(self.path)
            tensors[name] = Tensor(name, shape, kind, start, end)
        return Header(self.path, metadata, tensors)

    def scalar(self, form: str) -> int | float | bool:
        value: int | float | bool = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return value

    def skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self.data):
            raise _cut_short(self.path)

    def string(self) -> str:
        length = int(self.scalar("<Q"))
        start = self.at
        self.skip(length)
        return self.data[start : self.at].decode("utf-8")

    def value(self, kind: int) -> str | int | float | bool:
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            return self.array()
        return self.scalar(SCALARS[kind]) if kind in SCALARS else self.unknown(kind)

    def array(self) -> int:
        """Step over an array; returns its length."""
        kind, length = int(self.scalar("<I")), int(self.scalar("<Q"))
        if kind in SCALARS:
            self.skip(length * struct.calcsize(SCALARS[kind]))
        elif kind == STRING:
            unpack, data, at = struct.Struct("<Q").unpack_from, self.data, self.at
            for _ in range(length):
                at += 8 + unpack(data, at)[0]
            self.at = at
            self.skip(0)
        elif kind == ARRAY:
            for _ in range(length):
                self.array()
        else:
            self.unknown(kind)
        return length

    def unknown(self, kind: int) -> int:
        raise ModelError(
            f"{self.path} holds a value of the unknown GGUF type {kind}: it is damaged, or newer than this program. "
            "Download it again, or update claw-local."
        )

    def tensor_description(self) -> tuple[str, tuple[int, ...], int, int]:
        """Name, shape (rows first), ggml type, and offset from the start of the data."""
        name = self.string()
        dimensions = int(self.scalar("<I"))
        if not 1 <= dimensions <= MAX_DIMENSIONS:
            raise _cut_short(self.path)
        shape = tuple(int(self.scalar("<Q")) for _ in range(dimensions))[::-1]
        return name, shape, int(self.scalar("<I")), int(self.scalar("<Q"))

    def stored_bytes(self, name: str, shape: tuple[int, ...], kind: int) -> int:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        try:
            block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        except (KeyError, ValueError) as error:
            raise ModelError(
                f"The tensor {name} of {self.path} has the unknown type {kind}. "
                "Use a model file with a common quantisation (Q4_K_M, Q8_0, F16, ...)."
            ) from error
        count = 1
        for size in shape:
            count *= size
        if shape[-1] % block:
            raise _cut_short(self.path)
        return count // block * block_bytes
