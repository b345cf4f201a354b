"""Merging LoRAs into a model: a new GGUF file that any llama.cpp program opens. It must never know about the registry.

Each weight that a LoRA changes is undone, the update B A is added, and it is made again in the type it had; all other
bytes stay as they are, metadata and tokenizer among them. Rows go through in small pieces, so that memory does not grow
with the model. No row is moved: in a GGUF LoRA, q and k lie as they do in the model's file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..engine.base import AdapterSlot
from ..engine.gguf_file import GgufHeader
from ..engine.models import check_model
from ..engine.places import parts_of
from ..errors import AdapterError, ModelError, UsageError
from ..language import _
from ..leftovers import aside
from . import blocks
from .lora_file import LoraFile, open_lora
from .merge_layout import Layout, Place, lay_out
from .rounding import Rounding

if TYPE_CHECKING:
    from .merge_check import Distance

Report = Callable[[str, float], None]
"""Told in a few words what is being done, and the share that is done, from 0 to 1."""

PIECE_VALUES = 1 << 20
"""Values undone and made again at once."""
PIECE_BYTES = 8 << 20
"""Bytes copied at once."""
SPARE_BYTES = 16 << 20
"""Room that must be left on the disk."""


@dataclass(frozen=True)
class Merged:
    """What was written.

    Attributes:
        size, base_size: bytes of the file and of the model it was made from.
        changed: how many weights the adapters changed.
        types: how many tensors there are of each type, by the type's name.
        distance: how far its log-probabilities are from those of the model with the adapters; None: not measured.
    """

    path: Path
    size: int
    base_size: int
    changed: int
    types: dict[str, int]
    distance: Distance | None = None


def merge(
    base: Path,
    adapters: Sequence[AdapterSlot],
    target: Path,
    *,
    quant: str = "",
    force: bool = False,
    check: bool = True,
    report: Report = lambda words, fraction: None,
) -> Merged:
    """Write the model with the adapters in its weights. `target` appears at the end, whole, or not at all.

    Memory: below 1.5 times the largest tensor plus 300 MB while it writes. The check loads both models, one after the
    other, as chatting does.

    Args:
        base: GGUF file that the adapters were made for.
        adapters: GGUF LoRAs and how strongly each counts.
        quant: type of all matrices in the new file, as in "q8_0"; "": each keeps the type it has.
        force: replace a file that exists.
        check: measure how far the new model is from the old one with the adapters.
        report: told how far it is.

    Raises:
        AdapterError: an adapter does not fit or cannot be merged, or the file cannot be written.
        ModelError: the base cannot be read, or is in several parts.
        EngineError: a model could not be loaded for the check. UsageError: the file exists.
    """
    header = _whole_model(base)
    loras = [(open_lora(slot.path), slot.scale) for slot in adapters]
    changed = _changed(base, header, loras)
    layout = lay_out(base, header, quant, changed)
    _check_target(base, target, layout.size, force)
    try:
        with aside(target) as made:
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as out, base.open("rb") as source:
                _write(out, source, header, layout, changed, report)
                out.flush()
                os.fsync(out.fileno())
            distance = None
            if check:
                from .merge_check import measure

                distance = measure(base, adapters, made, report)
            os.replace(made, target)
    except OSError as error:
        raise AdapterError(
            _(
                "Cannot write {target}: {error}. Free some space, or choose another file.",
                target=target,
                error=error.strerror or error,
            )
        ) from error
    except blocks.CannotMake as error:
        raise AdapterError(
            _(
                "Weights of the type {type} cannot be written here. Add --quant with another "
                "one, such as --quant q8_0.",
                type=error,
            )
        ) from error
    report(_("done"), 1.0)
    return Merged(target, layout.size, header.file_size, len(changed), layout.types, distance)


Updates = dict[str, list[tuple[LoraFile, float]]]
"""For each weight that is changed, who changes it and how strongly."""


def _whole_model(base: Path) -> GgufHeader:
    header = check_model(base, on_gpu=True)  # Only its header is read: memory does not matter.
    if len(parts_of(base)) > 1:
        raise ModelError(
            _(
                "{name} is one of several parts of a model, and only a whole file can be "
                "merged. Put them together first, with llama.cpp's `llama-gguf-split --merge`.",
                name=base.name,
            )
        )
    unknown = next((name for name, tensor in header.tensors.items() if tensor.size is None), None)
    if unknown is not None:
        raise ModelError(
            _(
                "{name} holds {unknown} in a type that is not known here, so it cannot be merged.",
                name=base.name,
                unknown=unknown,
            )
        )
    return header


def _changed(base: Path, header: GgufHeader, loras: Sequence[tuple[LoraFile, float]]) -> Updates:
    """Raises AdapterError: one was made for another model, or changes what cannot be merged."""
    found: Updates = {}
    for lora, scale in loras:
        if lora.header.text("general.architecture") != header.text("general.architecture"):
            raise AdapterError(
                _(
                    "The adapter {path} was made for a {architecture} model, and {name} is {other}. Name the model it "
                    "was made for with --model.",
                    path=lora.path,
                    architecture=lora.header.text("general.architecture"),
                    name=base.name,
                    other=header.text("general.architecture"),
                )
            )
        for weight in sorted(lora.weights):
            tensor = header.tensors.get(weight)
            if tensor is None or weight == "token_embd.weight":
                raise AdapterError(
                    _(
                        "The adapter {path} changes {weight}, which cannot be merged into "
                        "{name}. Use it as an adapter instead.",
                        path=lora.path,
                        weight=weight,
                        name=base.name,
                    )
                )
            a, b = lora.shapes(weight)
            rows_first = tensor.shape[::-1]
            if a[:-2] != b[:-2] or (*b[:-1], a[-1]) != rows_first or b[-1] != a[-2]:
                raise AdapterError(
                    _(
                        "The adapter's shapes for {weight}, A {a} and B {b}, do not fit "
                        "{rows_first} in {name}. It was made for another model: name that one "
                        "with --model.",
                        weight=weight,
                        a=list(a),
                        b=list(b),
                        rows_first=list(rows_first),
                        name=base.name,
                    )
                )
            found.setdefault(weight, []).append((lora, scale))
    if not found:
        raise AdapterError(_("There is nothing to merge: no adapter was named."))
    return found


def _check_target(base: Path, target: Path, size: int, force: bool) -> None:
    if target.is_dir():
        raise AdapterError(
            _(
                "{target} is a folder. Name the file to write, such as {file}.",
                target=target,
                file=target / "merged.gguf",
            )
        )
    if not target.parent.is_dir():
        raise AdapterError(
            _("There is no folder {parent}. Make it first, or choose another file.", parent=target.parent)
        )
    if target.exists() and target.samefile(base):
        raise AdapterError(_("{target} is the model that is merged from. Choose another file.", target=target))
    if target.exists() and not (force and target.is_file()):
        raise UsageError(_("{target} exists. Choose another file, or add --force to write over it.", target=target))
    free = shutil.disk_usage(target.parent).free
    if size + SPARE_BYTES > free:
        raise AdapterError(
            _(
                "The new model takes {size:.2f} GB, and {free:.2f} GB are free in {folder}. "
                "Free some space, or choose another disk.",
                size=size / 1e9,
                free=free / 1e9,
                folder=target.parent,
            )
        )


def _write(
    out: BinaryIO, source: BinaryIO, header: GgufHeader, layout: Layout, changed: Updates, report: Report
) -> None:
    out.write(layout.head)
    done, total = 0, sum(place.size for place in layout.places)
    for place in layout.places:
        report(_("writing {name}", name=place.name), 0.8 * done / total)
        _pad(out, len(layout.head) + place.offset)
        tensor = header.tensors[place.name]
        source.seek(header.data_start + tensor.offset)
        if place.name not in changed and place.type == tensor.type:
            _copy(source, out, place.size)
        else:
            for piece in _remade(source, header, place, changed.get(place.name, [])):
                out.write(piece)
        done += place.size
    _pad(out, layout.size)


def _pad(out: BinaryIO, end: int) -> None:
    """Zeros up to a byte."""
    out.write(bytes(end - out.tell()))


def _copy(source: BinaryIO, out: BinaryIO, count: int) -> None:
    while count:
        piece = source.read(min(count, PIECE_BYTES))
        if not piece:
            raise OSError("the model's file became shorter meanwhile")
        out.write(piece)
        count -= len(piece)


def _remade(
    source: BinaryIO, header: GgufHeader, place: Place, updates: Sequence[tuple[LoraFile, float]]
) -> Iterator[bytes]:
    """The rows of one weight with its updates, in the type they are to have."""
    import numpy as np

    tensor = header.tensors[place.name]
    length, rows = tensor.shape[0], tensor.shape[1]
    pairs = [(*lora.pair(place.name), np.float32(scale)) for lora, scale in updates]
    rounding = Rounding(place.type, keeps_grid=place.type == tensor.type, name=place.name)
    step = max(1, PIECE_VALUES // length)
    stored = blocks.row_bytes(tensor.type, length)
    for matrix in range(prod(tensor.shape[2:])):
        for start in range(0, rows, step):
            count = min(step, rows - start)
            data = np.frombuffer(source.read(count * stored), np.uint8)
            values = blocks.undo(data, tensor.type, length)  # [count, in]
            update = np.zeros_like(values)
            for a, b, scale in pairs:
                update += scale * (b[matrix, start : start + count] @ a[matrix])
            yield rounding.made(data, values, update).tobytes()
