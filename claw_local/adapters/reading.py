"""Reading a GGUF LoRA, made by whomever, as the PEFT LoRA that does the same. It must never trust what the file says.

Format: see `gguf`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.gguf_file import DamagedGguf, GgufHeader, GgufTensor, read_header
from ..errors import AdapterError
from ..language import _
from .gguf import BaseShape, unpermute_rows
from .peft import MODULES, PeftLora, Place, plain_name

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

READABLE = {0: "F32", 1: "F16", 8: "Q8_0", 30: "BF16"}
"""ggml types in which LoRAs are kept."""

_TENSOR = re.compile(r"^blk\.(\d{1,4})\.(\w+)\.weight\.lora_(a|b)$")
_MODULE_OF = {name: module for module, name in MODULES.items()}


def read_gguf(path: Path, base: BaseShape) -> PeftLora:
    """Read a GGUF LoRA that fits `base`, made by whomever, as the PEFT LoRA of one rank that does the same.

    Raises:
        AdapterError: it cannot be read, is damaged, is not a LoRA on linear layers of a model of this architecture and
            these shapes, or holds a value that is not finite.
    """
    header = _lora_header(path, base)
    alpha = header.metadata.get("adapter.lora.alpha")
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 <= alpha < 1e6:
        raise AdapterError(
            _("{path} says nothing of its scale (adapter.lora.alpha), or no number from 0 up.", path=path)
        )
    halves: dict[Place, dict[str, GgufTensor]] = {}
    for name, tensor in header.tensors.items():
        match = _TENSOR.match(name)
        if match is None or match[2] not in _MODULE_OF:
            raise AdapterError(
                _(
                    "{path} changes {name}, and only LoRAs on the linear layers of the blocks can be taken.",
                    path=path,
                    name=name[:120],
                )
            )
        halves.setdefault((int(match[1]), _MODULE_OF[match[2]]), {})[match[3]] = tensor
    if not halves:
        raise AdapterError(_("{path} is a LoRA without any matrix, so there is nothing to take.", path=path))
    for (block, module), pair in halves.items():
        if set(pair) != {"a", "b"}:
            raise AdapterError(
                _("{path} lacks half of {module} in block {block}.", path=path, module=module, block=block)
            )
        base.check_pair((block, module), pair["a"].shape[::-1], pair["b"].shape[::-1])
    rank = max(pair["a"].shape[1] for pair in halves.values())
    weights = {}
    with path.open("rb") as file:
        for place, pair in sorted(halves.items()):
            a, b = (_matrix(file, path, header, pair[half]) for half in ("a", "b"))
            if base.permutes(place[1]):
                b = unpermute_rows(b, base.heads(place[1]))
            weights[place] = _of_rank(a, b, rank, float(alpha))
    return PeftLora(float(alpha) or float(rank), weights, plain_name(base.name))


def _lora_header(path: Path, base: BaseShape) -> GgufHeader:
    try:
        header = read_header(path)
    except DamagedGguf as damage:
        raise AdapterError(
            _("{path} {damage}. Get it again from where it came from.", path=path, damage=damage)
        ) from damage
    except (OSError, ValueError) as error:
        raise AdapterError(
            _("{path} cannot be read ({error}). Make it readable, or name another file.", path=path, error=error)
        ) from error
    if header.text("general.type") != "adapter" or header.text("adapter.type") != "lora":
        raise AdapterError(
            _("{path} is GGUF, but not a LoRA adapter. `claw-local models add` takes a whole model.", path=path)
        )
    architecture = header.text("general.architecture")
    if architecture != base.architecture:
        raise AdapterError(
            _(
                "{path} was made for a {architecture} model, and {name} is {other}.",
                path=path,
                architecture=architecture[:40],
                name=base.path.name,
                other=base.architecture,
            )
        )
    if any(key.startswith("adapter.alora.") for key in header.metadata):
        raise AdapterError(
            _("{path} is an activated LoRA (aLoRA), for a part of a prompt only: it is not taken.", path=path)
        )
    return header


def _matrix(file: Any, path: Path, header: GgufHeader, tensor: GgufTensor) -> Array:
    """One matrix, [rows, columns], as float32."""
    import numpy as np
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    if tensor.type not in READABLE or tensor.size is None:
        raise AdapterError(
            _(
                "{path} keeps its matrices as ggml type {type}; {types} work.",
                path=path,
                type=tensor.type,
                types=", ".join(READABLE.values()),
            )
        )
    columns, rows = tensor.shape
    file.seek(header.data_start + tensor.offset)
    data = np.frombuffer(file.read(tensor.size), np.uint8)
    if data.size != tensor.size or data.size % rows:
        raise AdapterError(_("{path} is cut short. Get it again from where it came from.", path=path))
    with np.errstate(all="ignore"):
        matrix = dequantize(data.reshape(rows, -1), GGMLQuantizationType(tensor.type))
    if matrix.shape != (rows, columns):
        raise AdapterError(
            _(
                "{path} is damaged: a matrix of {rows} by {columns} has too little data.",
                path=path,
                rows=rows,
                columns=columns,
            )
        )
    if not np.isfinite(matrix).all():
        raise AdapterError(_("{path} holds values that are not finite, so it cannot be applied.", path=path))
    result: Array = np.ascontiguousarray(matrix, np.float32)
    return result


def _of_rank(a: Array, b: Array, rank: int, alpha: float) -> tuple[Array, Array]:
    """A [r, in] and B [out, r] at another, higher rank, so that (alpha / rank) · B A is what it was."""
    import numpy as np

    own = a.shape[0]
    if own == rank:
        return a, b
    if alpha:
        b = b * np.float32(rank / own)
    return (
        np.concatenate([a, np.zeros((rank - own, a.shape[1]), np.float32)]),
        np.concatenate([b, np.zeros((b.shape[0], rank - own), np.float32)], axis=1),
    )
