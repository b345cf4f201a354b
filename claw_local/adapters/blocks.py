"""Between numbers and the blocks in which GGUF files hold them. It must never know what the numbers are for.

Both ways with ggml, which llama.cpp brings along: it is quick, and it can make the K-quants, which the gguf package
cannot. That package is the way out where ggml is not found.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.gguf_file import BLOCKS, GgufHeader

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]
    Bytes = npt.NDArray[np.uint8]

F32 = 0


class CannotMake(ValueError):
    """Numbers cannot be written in this type. The message is the type's name."""


def type_name(kind: int) -> str:
    """The ggml type's name, as in Q4_K."""
    from gguf import GGMLQuantizationType

    try:
        return str(GGMLQuantizationType(kind).name)
    except ValueError:
        return f"type {kind}"


def row_bytes(kind: int, length: int) -> int:
    """Bytes of one row of so many values."""
    block, size = BLOCKS[kind]
    return length // block * size


def undo(data: Bytes, kind: int, length: int) -> Array:
    """[n, bytes] rows of blocks -> [n, length] values.

    Raises:
        NotImplementedError, ValueError, KeyError: this type cannot be undone.
    """
    import numpy as np
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    rows = data.reshape(-1, row_bytes(kind, length))
    in_c = _undo_in_c(kind)
    if in_c is not None:
        rows, out = np.ascontiguousarray(rows), np.empty((len(rows), length), np.float32)
        in_c(rows.ctypes.data, out.ctypes.data, out.size)
        return out
    values = dequantize(rows, GGMLQuantizationType(kind))
    return np.ascontiguousarray(values, np.float32).reshape(-1, length)


def make(values: Array, kind: int) -> Bytes:
    """[n, length] values -> [n, bytes] rows of blocks.

    Raises:
        CannotMake: numbers cannot be written in this type here.
    """
    import numpy as np

    values = np.ascontiguousarray(values, np.float32)
    rows, length = values.shape
    if kind == F32:
        return values.view(np.uint8).reshape(rows, -1)
    ggml = _ggml()
    if ggml is None:
        return _made_in_python(values, kind)
    if ggml.ggml_quantize_requires_imatrix(kind):
        raise CannotMake(type_name(kind))
    out = np.empty((rows, row_bytes(kind, length)), np.uint8)
    written = ggml.ggml_quantize_chunk(kind, values.ctypes.data, out.ctypes.data, 0, rows, length, None)
    if written != out.nbytes:
        raise CannotMake(type_name(kind))
    return out


def read(path: Path, header: GgufHeader, name: str) -> Array:
    """[shape, rows first] one tensor of a file, its values.

    Raises:
        OSError: it cannot be read. NotImplementedError, ValueError, KeyError: its type cannot be undone.
    """
    import numpy as np

    tensor = header.tensors[name]
    length, rows = tensor.shape[0], prod(tensor.shape[1:])
    with path.open("rb") as file:
        file.seek(header.data_start + tensor.offset)
        data = np.frombuffer(file.read(rows * row_bytes(tensor.type, length)), np.uint8)
    return undo(data, tensor.type, length).reshape(tensor.shape[::-1])


def _made_in_python(values: Array, kind: int) -> Bytes:
    from gguf import GGMLQuantizationType
    from gguf.quants import quantize

    try:
        made: Bytes = quantize(values, GGMLQuantizationType(kind))
        return made.view("uint8").reshape(len(values), -1)
    except (NotImplementedError, ValueError) as error:
        raise CannotMake(type_name(kind)) from error


@cache
def _undo_in_c(kind: int) -> Any:
    """ggml's function (blocks, values, how many values) for a type; None: it has none of that name."""
    name = type_name(kind)
    name = name.lower() if not name.endswith("_K") else name[:-1].lower() + "K"
    undo_row = getattr(_ggml(), f"dequantize_row_{name}", None)
    if undo_row is not None:
        undo_row.argtypes, undo_row.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64], None
    return undo_row


@cache
def _ggml() -> Any:
    """The library that llama.cpp quantises with, found without loading llama.cpp; None if it is not there."""
    spec = find_spec("llama_cpp")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for pattern in ("libggml-base.so", "libggml-base.dylib", "*ggml-base.dll"):
            for file in sorted((Path(folder) / "lib").glob(pattern)):
                try:
                    library = ctypes.CDLL(str(file))
                    quantize = library.ggml_quantize_chunk
                    requires = library.ggml_quantize_requires_imatrix
                except (OSError, AttributeError):
                    continue
                int64, pointer = ctypes.c_int64, ctypes.c_void_p
                quantize.argtypes = [ctypes.c_int, pointer, pointer, int64, int64, int64, pointer]
                quantize.restype = ctypes.c_size_t
                requires.argtypes, requires.restype = [ctypes.c_int], ctypes.c_bool
                return library
    return None
