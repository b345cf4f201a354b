"""Reading the header of a GGUF file, and seeing that the file is whole, before any C code touches it.

It must never know about settings or the engine: it says what is wrong in a few words, and the caller makes a sentence.
Source: the GGUF specification, versions 2 and 3 (little-endian).
"""

from __future__ import annotations

import mmap
import stat
import struct
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from ..language import _

Value = int | float | bool | str | list[int | float | bool] | None
"""A metadata value; None stands for an array that is not worth keeping (a vocabulary)."""

_MAGIC = b"GGUF"
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LONGEST_KEPT_ARRAY = 1024
_DEEPEST_ARRAY = 4
"""Arrays inside arrays; no writer of GGUF nests them at all."""

BLOCKS: dict[int, tuple[int, int]] = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    15: (256, 292),
    16: (256, 66),
    17: (256, 74),
    18: (256, 98),
    19: (256, 50),
    20: (32, 18),
    21: (256, 110),
    22: (256, 82),
    23: (256, 136),
    24: (1, 1),
    25: (1, 2),
    26: (1, 4),
    27: (1, 8),
    28: (1, 8),
    29: (256, 56),
    30: (1, 2),
    34: (256, 54),
    35: (256, 66),
    39: (32, 17),
}
"""ggml type -> (elements in a block, bytes of a block). A type that is newer than this list is left to llama.cpp."""


class DamagedGguf(ValueError):
    """The file is not GGUF, or not whole. The message completes the sentence "The file ...".

    Args:
        whole: it is no other kind of file, and nothing of it is missing: to get it again is of no use.
    """

    def __init__(self, words: str, *, whole: bool = False) -> None:
        super().__init__(words)
        self.whole = whole


@dataclass(frozen=True)
class GgufTensor:
    """One tensor's entry: shape in GGUF order (fastest dimension first), ggml type, bytes from where data begins."""

    shape: tuple[int, ...]
    type: int
    offset: int

    @property
    def size(self) -> int | None:
        """Bytes of the tensor's data; None for a type this module does not know."""
        block = BLOCKS.get(self.type)
        return None if block is None else prod(self.shape) // block[0] * block[1]


@dataclass(frozen=True)
class GgufHeader:
    """What a GGUF file says about itself.

    Attributes:
        data_start: byte where tensor data begins.
        file_size: in bytes.
        values_end: byte after the metadata, where the list of tensors begins.
        places: byte where each metadata value begins.
    """

    version: int
    metadata: dict[str, Value]
    tensors: dict[str, GgufTensor]
    data_start: int
    file_size: int
    values_end: int
    places: dict[str, int]

    @property
    def alignment(self) -> int:
        """Each tensor's data begins at a multiple of so many bytes."""
        value = self.metadata.get("general.alignment", 32)
        return value if isinstance(value, int) and value > 0 else 32

    def text(self, key: str) -> str:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else ""

    def numbers(self, key: str, default: int = 0) -> list[int]:
        """A metadata number as a list: some keys hold one number, or one for each layer."""
        value = self.metadata.get(key)
        if isinstance(value, list):
            return [int(number) for number in value]
        return [int(value)] if isinstance(value, (int, float)) else [default]


def read_header(path: Path) -> GgufHeader:
    """Read a GGUF file's header and check that all its tensors lie inside the file.

    Raises:
        DamagedGguf: not a regular file (to open a FIFO would wait for ever), not GGUF, a version that is not
            supported, or cut short.
        OSError: the file cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise DamagedGguf(_("is not a regular file"), whole=True)
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise DamagedGguf(_("is not a GGUF file"), whole=True)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                header = _Cursor(data).header()
            except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
                raise DamagedGguf(_("is cut short or damaged: its header cannot be read to the end")) from error
    for name, tensor in header.tensors.items():
        end = header.data_start + tensor.offset + (tensor.size or 1)
        if end > header.file_size:
            raise DamagedGguf(
                _(
                    "is cut short: {name} should end at byte {end:,}, but the file has {size:,}",
                    name=name,
                    end=end,
                    size=header.file_size,
                )
            )
    return header


class _Cursor:
    """A place in the mapped file that moves on as values are read."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 4

    def number(self, code: str) -> int | float | bool:
        value: int | float | bool = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def count(self, code: str = "Q") -> int:
        return int(self.number(code))

    def string(self) -> str:
        length = self.count()
        if length > len(self.data) - self.at:
            raise IndexError
        self.at += length
        return self.data[self.at - length : self.at].decode("utf-8")

    def value(self, kind: int) -> Value:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array()
        if kind not in _SCALARS:
            raise DamagedGguf(_("is damaged: it holds a value of the unknown kind {kind}", kind=kind))
        return self.number(_SCALARS[kind])

    def array(self, depth: int = 1) -> Value:
        if depth > _DEEPEST_ARRAY:
            raise DamagedGguf(_("is damaged: it holds arrays more than {most} deep in each other", most=_DEEPEST_ARRAY))
        kind, length = self.count("I"), self.count()
        if kind == _STRING:
            # Vocabularies: hundreds of thousands of strings, only stepped over.
            unpack, data, at = struct.Struct("<Q").unpack_from, self.data, self.at
            for _step in range(length):
                at += 8 + unpack(data, at)[0]
            self.at = at
            return None
        if kind == _ARRAY:
            for _step in range(length):
                self.array(depth + 1)
            return None
        if kind not in _SCALARS:
            raise DamagedGguf(_("is damaged: it holds an array of the unknown kind {kind}", kind=kind))
        code = _SCALARS[kind]
        start = self.at
        self.at += length * struct.calcsize("<" + code)
        if self.at > len(self.data):
            raise IndexError
        if length > _LONGEST_KEPT_ARRAY:
            return None
        return list(struct.unpack_from(f"<{length}{code}", self.data, start))

    def header(self) -> GgufHeader:
        version = self.count("I")
        if version not in (2, 3):
            raise DamagedGguf(
                _(
                    "is GGUF version {version}, and only versions 2 and 3 (little-endian) are supported",
                    version=version,
                ),
                whole=True,
            )
        n_tensors, n_values = self.count(), self.count()
        metadata: dict[str, Value] = {}
        places: dict[str, int] = {}
        for _step in range(n_values):
            key, kind = self.string(), self.count("I")
            places[key] = self.at
            metadata[key] = self.value(kind)
        values_end = self.at
        tensors: dict[str, GgufTensor] = {}
        for _step in range(n_tensors):
            name = self.string()
            shape = tuple(self.count() for _step in range(self.count("I")))
            tensors[name] = GgufTensor(shape, self.count("I"), self.count())
        header = GgufHeader(version, metadata, tensors, 0, len(self.data), values_end, places)
        return replace(header, data_start=-(-self.at // header.alignment) * header.alignment)
