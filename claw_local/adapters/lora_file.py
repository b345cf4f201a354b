"""Reading the matrices of a GGUF LoRA, one pair at a time. It must never know about the model it changes.

Format: see `gguf`. Only plain matrices are read: what changes an embedding lies differently in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.gguf_file import DamagedGguf, GgufHeader, read_header
from ..errors import AdapterError
from ..language import _
from . import blocks

if TYPE_CHECKING:
    from .gguf import Array

HALVES = (".lora_a", ".lora_b")


@dataclass(frozen=True)
class LoraFile:
    """A GGUF LoRA on the disk.

    Attributes:
        alpha: numerator of the scale alpha / r; 0 means a scale of 1.
        weights: names of the weights it changes.
    """

    path: Path
    header: GgufHeader
    alpha: float
    weights: frozenset[str]

    def shapes(self, weight: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """([..., r, in], [..., out, r]): the shapes of A and B, rows first."""
        a, b = (self.header.tensors[weight + half].shape[::-1] for half in HALVES)
        return a, b

    def pair(self, weight: str) -> tuple[Array, Array]:
        """A [n, r, in] and B [n, out, r], B scaled by alpha / r: the update of matrix i of the weight is B[i] A[i].

        Raises:
            AdapterError: a matrix cannot be read, or a value is not finite.
        """
        import numpy as np

        found = []
        for half in HALVES:
            tensor = self.header.tensors[weight + half]
            try:
                values = blocks.read(self.path, self.header, weight + half)
            except (OSError, ValueError, KeyError, NotImplementedError) as error:
                raise AdapterError(
                    _(
                        "Cannot read {weight} of the adapter {path}: {error}.",
                        weight=weight + half,
                        path=self.path,
                        error=error,
                    )
                ) from error
            if not np.isfinite(values).all():
                raise AdapterError(
                    _("{weight} in {path} holds values that are not finite.", weight=weight + half, path=self.path)
                )
            found.append(values.reshape(-1, tensor.shape[1], tensor.shape[0]))
        a, b = found
        return a, b * np.float32(self.alpha / a.shape[1] if self.alpha else 1.0)


def open_lora(path: Path) -> LoraFile:
    """Read the header of a GGUF LoRA.

    Raises:
        AdapterError: missing, damaged, not a LoRA, or half of a pair is missing.
    """
    try:
        header = read_header(path)
    except DamagedGguf as damage:
        raise AdapterError(_("The adapter file {path} {damage}.", path=path, damage=damage)) from damage
    except OSError as error:
        raise AdapterError(
            _("Cannot read the adapter file {path}: {error}.", path=path, error=error.strerror or error)
        ) from error
    alpha = header.metadata.get("adapter.lora.alpha")
    if header.text("adapter.type") != "lora" or not isinstance(alpha, int | float):
        raise AdapterError(_("The file {path} is GGUF, but it is not a LoRA adapter.", path=path))
    names = [{name.removesuffix(half) for name in header.tensors if name.endswith(half)} for half in HALVES]
    if names[0] != names[1] or 2 * len(names[0]) != len(header.tensors) or not names[0]:
        raise AdapterError(
            _("The adapter {path} is not made of pairs of matrices. Train or import it again.", path=path)
        )
    return LoraFile(path, header, float(alpha), frozenset(names[0]))
