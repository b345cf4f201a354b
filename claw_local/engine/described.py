"""What a model file says about itself, for lists: read from GGUF headers, remembered between starts.

It must never load a model: a list of fifty files has to come at once.
"""

from __future__ import annotations

import json
import re
import stat
from collections import Counter
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

from ..files import write_whole
from .gguf_file import DamagedGguf, GgufHeader, read_header
from .places import parts_of

KNOWN_FILE = "model-files.json"

FILE_TYPES = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
}
"""general.file_type -> what people call the quantisation (llama.h, enum llama_ftype)."""

QUANT = re.compile(
    r"(?<![A-Z0-9])(I?Q[1-8]_(?:K(?:_(?:XXS|XS|S|M|L|XL))?|XXS|XS|NL|[SML]|[01])|BF16|F16|F32|MXFP4)(?![A-Z0-9])", re.I
)
"""A quantisation's name inside a file name."""

_NO_CHAT = re.compile(r"^(clip|t5encoder|wavtokenizer.*|.*bert.*|gemma-embedding|.*-tts)$")
"""Architectures that hold no chat: encoders, projectors, voices."""


@dataclass(frozen=True)
class Description:
    """One model's files.

    Attributes:
        title: what it calls itself. parameters: how many weights. quantisation: as in "Q4_K_M".
        context: tokens it was trained for. chats: whether it is a language model that can answer.
        size_bytes: of all its parts.
    """

    title: str
    architecture: str
    parameters: int
    quantisation: str
    context: int
    chats: bool
    size_bytes: int


class Descriptions:
    """Descriptions of files, remembered in a folder by path, size and time of change.

    Args:
        folder: where they are remembered; None: nowhere.
    """

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / KNOWN_FILE
        self._known = _read(self._file)
        self._changed = False

    def of(self, path: Path) -> Description | None:
        """What the file says; None if it is not a whole GGUF file, or cannot be read."""
        parts = parts_of(path)
        try:
            states = [part.stat() for part in parts]
            if not all(stat.S_ISREG(state.st_mode) for state in states):
                return None
            mark = [[state.st_size, state.st_mtime_ns] for state in states]
            entry = self._known.get(str(path), {})
            if entry.get("mark") == mark:
                return Description(**entry["said"]) if entry["said"] else None
            said = describe([read_header(part) for part in parts], path.name)
        except DamagedGguf:
            said = None
        except (OSError, ValueError, TypeError):
            return None
        self._known[str(path)] = {"mark": mark, "said": said and asdict(said)}
        self._changed = True
        return said

    def keep(self) -> None:
        """Remember what was read. Only a shortcut for the next list: where it cannot be written, it is read again."""
        if self._file is None or not self._changed:
            return
        try:
            kept = {name: entry for name, entry in self._known.items() if Path(name).exists()}
            write_whole(self._file, json.dumps(kept, indent=1).encode())
        except OSError:
            pass


def describe(headers: list[GgufHeader], name: str) -> Description | None:
    """Put together what the parts' headers say; the first part holds the metadata. None: it holds no model."""
    first = headers[0]
    architecture = first.text("general.architecture")
    kind = first.text("general.type") or "model"
    tensors = [tensor for header in headers for tensor in header.tensors.values()]
    if kind != "model" or not architecture or not tensors:
        return None
    return Description(
        title=first.text("general.name"),
        architecture=architecture,
        parameters=sum(prod(tensor.shape) for tensor in tensors),
        quantisation=_quantisation(first, Counter(tensor.type for tensor in tensors), name),
        context=first.numbers(f"{architecture}.context_length")[0],
        chats=_NO_CHAT.match(architecture) is None,
        size_bytes=sum(header.file_size for header in headers),
    )


def quant_in(name: str) -> str:
    """The quantisation that a file's name tells, in capitals; "" if it tells none."""
    found = QUANT.findall(name)
    return str(found[-1]).upper() if found else ""


def _quantisation(header: GgufHeader, types: Counter[int], name: str) -> str:
    told = header.metadata.get("general.file_type")
    if isinstance(told, int) and told in FILE_TYPES:
        return FILE_TYPES[told]
    return quant_in(name) or _TENSOR_TYPES.get(types.most_common(1)[0][0], "")


_TENSOR_TYPES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 12: "Q4_K", 14: "Q6_K"}
_TENSOR_TYPES |= {10: "Q2_K", 11: "Q3_K", 13: "Q5_K", 30: "BF16"}


def _read(file: Path | None) -> dict[str, dict[str, Any]]:
    if file is None:
        return {}
    try:
        known = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {name: entry for name, entry in known.items() if isinstance(entry, dict) and {"mark", "said"} <= set(entry)}
