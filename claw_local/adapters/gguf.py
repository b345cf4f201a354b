"""LoRAs between PEFT's files and the GGUF LoRA that llama.cpp loads. It must never know about torch.

Format: llama.cpp's LoRA reader (src/llama-adapter.cpp): for each weight `W` a pair `W.lora_a` [r, in], `W.lora_b`
[out, r] and the number `adapter.lora.alpha`; the update is (alpha / r) · B A, or B A where alpha is 0.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..engine.gguf_file import GgufHeader
from ..engine.models import check_model
from ..errors import AdapterError
from ..language import _
from ..leftovers import aside
from .peft import MODULES, PeftLora, Place, read_peft

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

__all__ = [
    "MODULES",
    "BaseShape",
    "PeftLora",
    "convert_lora",
    "permute_rows",
    "read_peft",
    "unpermute_rows",
    "write_gguf",
]

PERMUTED_ARCHITECTURES = frozenset({"llama"})
"""Architectures whose q and k rows are stored in another order in GGUF than in transformers."""

MOST_RANK = 1024


@dataclass(frozen=True)
class BaseShape:
    """What a LoRA must fit: the base's header, as far as that goes."""

    path: Path
    header: GgufHeader

    @classmethod
    def of(cls, base: Path) -> BaseShape:
        """Raises ModelError: `base` cannot be read."""
        return cls(base, check_model(base, on_gpu=True))  # only its header is read: memory does not matter

    @property
    def architecture(self) -> str:
        return self.header.text("general.architecture")

    @property
    def name(self) -> str:
        """What the model calls itself; "" if it does not."""
        return self.header.text("general.name")

    def heads(self, module: str) -> int:
        """How many heads the rows of q or k are made of."""
        heads = self.header.numbers(f"{self.architecture}.attention.head_count")[0]
        if module == "self_attn.q_proj":
            return heads
        return self.header.numbers(f"{self.architecture}.attention.head_count_kv", heads)[0]

    def permutes(self, module: str) -> bool:
        """Whether GGUF keeps this module's rows in another order than transformers does."""
        return self.architecture in PERMUTED_ARCHITECTURES and module in ("self_attn.q_proj", "self_attn.k_proj")

    def check(self, lora: PeftLora) -> None:
        """Does every B A have the shape of the base's weight?

        Raises:
            AdapterError: one has not; the message names it.
        """
        for place, (a, b) in sorted(lora.weights.items()):
            self.check_pair(place, a.shape, b.shape)

    def check_pair(self, place: Place, a: tuple[int, ...], b: tuple[int, ...]) -> None:
        """The same for one pair of shapes, A [r, in] and B [out, r]."""
        name = f"blk.{place[0]}.{MODULES[place[1]]}.weight"
        weight = self.header.tensors.get(name)
        if weight is None:
            raise AdapterError(
                _(
                    "The adapter changes {name}, which {model} does not have. It was trained on another model.",
                    name=name,
                    model=self.path.name,
                )
            )
        shape = weight.shape[::-1]  # GGUF names the fastest dimension first
        if len(a) != 2 or len(b) != 2 or a[0] != b[1] or (b[0], a[1]) != shape:
            raise AdapterError(
                _(
                    "The adapter's shapes for {name}, A {a} and B {b}, do not fit {shape} in "
                    "{model}. It was trained on another model.",
                    name=name,
                    a=list(a),
                    b=list(b),
                    shape=list(shape),
                    model=self.path.name,
                )
            )
        if not 1 <= a[0] <= MOST_RANK:
            raise AdapterError(
                _(
                    "The adapter's rank for {name} is {rank}, and ranks from 1 to {most} can be applied.",
                    name=name,
                    rank=a[0],
                    most=MOST_RANK,
                )
            )


def permute_rows(weight: npt.NDArray[Any], heads: int) -> npt.NDArray[Any]:
    """Rows of q or k from transformers' order to GGUF's order for llama-family models.

    transformers rotates dimension i with dimension i + d/2 of a head, llama.cpp's llama rotates neighbours, so that row
    i of a head's first half becomes row 2i, and row i of its second half row 2i + 1.

    Args:
        weight: [heads · d, ...] rows of all heads, head after head.
        heads: how many heads.

    Returns:
        [heads · d, ...]
    """
    rows = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])  # [heads, half, d/2, ...]
    return rows.swapaxes(1, 2).reshape(weight.shape)


def unpermute_rows(weight: npt.NDArray[Any], heads: int) -> npt.NDArray[Any]:
    """The inverse of `permute_rows`: [heads · d, ...] -> [heads · d, ...]."""
    rows = weight.reshape(heads, weight.shape[0] // heads // 2, 2, *weight.shape[1:])  # [heads, d/2, half, ...]
    return rows.swapaxes(1, 2).reshape(weight.shape)


def convert_lora(
    peft_dir: Path, base: Path, target: Path, *, precision: Literal["f32", "f16"] = "f32", permute: bool | None = None
) -> Path:
    """Write a PEFT LoRA as a GGUF LoRA that fits `base`. The same input gives the same bytes.

    Args:
        peft_dir: folder with adapter_config.json and adapter_model.safetensors.
        base: GGUF file of the model the LoRA was trained on.
        target: file to write; whole or not at all.
        precision: how the matrices are stored.
        permute: reorder the rows of B for q and k; None decides by the architecture.

    Returns:
        `target`.

    Raises:
        AdapterError: files are missing or damaged, a matrix does not fit the base or is not finite, the LoRA uses
            something llama.cpp cannot apply, or the file cannot be written.
        ModelError: `base` cannot be read.
    """
    return write_gguf(read_peft(peft_dir), BaseShape.of(base), target, precision=precision, permute=permute)


def write_gguf(
    lora: PeftLora,
    base: BaseShape,
    target: Path,
    *,
    precision: Literal["f32", "f16"] = "f32",
    permute: bool | None = None,
) -> Path:
    """The same for a LoRA that has been read."""
    pairs: dict[str, tuple[Array, Array]] = {}
    base.check(lora)
    for (block, module), (a, b) in sorted(lora.weights.items()):
        qk = module in ("self_attn.q_proj", "self_attn.k_proj")
        if base.permutes(module) if permute is None else permute and qk:
            b = permute_rows(b, base.heads(module))
        pairs[f"blk.{block}.{MODULES[module]}.weight"] = (a, b)
    _write(target, base.architecture, lora.alpha, pairs, precision)
    return target


def _write(
    target: Path,
    architecture: str,
    alpha: float,
    pairs: dict[str, tuple[Array, Array]],
    precision: Literal["f32", "f16"],
) -> None:
    """Write the GGUF file aside, fsync it and rename it over `target`."""
    import numpy as np
    from gguf import GGUFType, GGUFWriter, Keys

    stored = np.float16 if precision == "f16" else np.float32
    try:
        with aside(target) as made:
            writer = GGUFWriter(made, architecture)
            writer.add_type(GGUFType.ADAPTER)
            writer.add_string(Keys.Adapter.TYPE, "lora")
            writer.add_float32(Keys.Adapter.LORA_ALPHA, alpha)
            for name, (a, b) in pairs.items():
                writer.add_tensor(f"{name}.lora_a", np.ascontiguousarray(a, stored))
                writer.add_tensor(f"{name}.lora_b", np.ascontiguousarray(b, stored))
            try:
                writer.write_header_to_file()
                writer.write_kv_data_to_file()
                writer.write_tensors_to_file()
            finally:
                writer.close()
            with made.open("rb+") as file:
                os.fsync(file.fileno())
            made.chmod(0o600)
            os.replace(made, target)
    except OSError as error:
        raise AdapterError(
            _(
                "Cannot write {target}: {error}. Free some space, or make the folder writable.",
                target=target,
                error=error.strerror or error,
            )
        ) from error
