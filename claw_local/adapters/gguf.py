"""Turning a LoRA from PEFT's files into the GGUF LoRA that llama.cpp loads. It must never know about torch.

Format: llama.cpp's LoRA reader (src/llama-adapter.cpp): for each weight `W` a pair `W.lora_a` [r, in], `W.lora_b`
[out, r] and the number `adapter.lora.alpha`; the update is (alpha / r) · B A.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..engine.gguf_file import GgufHeader
from ..engine.models import check_model
from ..errors import AdapterError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

MODULES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""Names of a block's linear layers: in transformers, in GGUF."""

PERMUTED_ARCHITECTURES = frozenset({"llama"})
"""Architectures whose q and k rows are stored in another order in GGUF than in transformers."""

KEY = re.compile(r"^base_model\.model\.model\.layers\.(\d+)\.(\S+?)\.lora_(A|B)\.weight$")


@dataclass(frozen=True)
class PeftLora:
    """A LoRA as PEFT stores it.

    Attributes:
        alpha: numerator of the scale alpha / r.
        weights: (block, module as in `MODULES`) -> (A [r, in], B [out, r]).
    """

    alpha: float
    weights: dict[tuple[int, str], tuple[Array, Array]]


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
    header = check_model(base, on_gpu=True)  # only its header is read: memory does not matter
    architecture = header.text("general.architecture")
    heads = header.numbers(f"{architecture}.attention.head_count")[0]
    heads_kv = header.numbers(f"{architecture}.attention.head_count_kv", heads)[0]
    lora = read_peft(peft_dir)
    if permute is None:
        permute = architecture in PERMUTED_ARCHITECTURES
    pairs: dict[str, tuple[Array, Array]] = {}
    for (block, module), (a, b) in sorted(lora.weights.items()):
        name = f"blk.{block}.{MODULES[module]}.weight"
        _check_fit(header, base, name, a, b)
        if permute and module == "self_attn.q_proj":
            b = permute_rows(b, heads)
        elif permute and module == "self_attn.k_proj":
            b = permute_rows(b, heads_kv)
        pairs[name] = (a, b)
    _write(target, architecture, lora.alpha, pairs, precision)
    return target


def read_peft(folder: Path) -> PeftLora:
    """Read a PEFT LoRA.

    Raises:
        AdapterError: a file is missing or damaged, a value is not finite, or it is not a plain LoRA on linear layers.
    """
    config = _read_config(folder / "adapter_config.json")
    tensors = _read_tensors(folder / "adapter_model.safetensors")
    halves: dict[tuple[int, str], dict[str, Array]] = {}
    for key, tensor in tensors.items():
        match = KEY.match(key)
        if match is None or match[2] not in MODULES:
            raise AdapterError(
                f"The adapter in {folder} changes {key}, which cannot be applied while chatting. "
                "Train it on the linear layers of the blocks only."
            )
        halves.setdefault((int(match[1]), match[2]), {})[match[3]] = tensor
    if not halves:
        raise AdapterError(f"The adapter in {folder} is empty. Train it again.")
    weights: dict[tuple[int, str], tuple[Array, Array]] = {}
    for place, pair in halves.items():
        if set(pair) != {"A", "B"}:
            raise AdapterError(f"The adapter in {folder} lacks half of {place[1]} in block {place[0]}. Train it again.")
        weights[place] = (pair["A"], pair["B"])
    rank = next(iter(weights.values()))[0].shape[0]
    alpha = float(config["lora_alpha"])
    # rank-stabilised LoRA scales by alpha / sqrt(r); llama.cpp always by alpha / r
    return PeftLora(alpha * rank**0.5 if config.get("use_rslora") else alpha, weights)


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise AdapterError(
            f"Cannot read {path}: {error.strerror or error}. The adapter must be trained again."
        ) from error
    except ValueError as error:
        raise AdapterError(f"{path} is damaged: {error}. The adapter must be trained again.") from error
    if not isinstance(config, dict) or config.get("peft_type") != "LORA" or "lora_alpha" not in config:
        raise AdapterError(f"{path} does not describe a LoRA. Choose the folder of a LoRA adapter.")
    cannot = [key for key in ("use_dora", "rank_pattern", "alpha_pattern", "modules_to_save") if config.get(key)]
    if config.get("bias", "none") != "none":
        cannot.append("bias")
    if cannot:
        raise AdapterError(
            f"The adapter in {path.parent} uses {', '.join(cannot)}, which cannot be applied while chatting. "
            "Train a plain LoRA."
        )
    return config


def _read_tensors(path: Path) -> dict[str, Array]:
    """All matrices as float32, checked to be finite."""
    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        stored = load(path.read_bytes())
    except OSError as error:
        raise AdapterError(
            f"Cannot read {path}: {error.strerror or error}. The adapter must be trained again."
        ) from error
    except (SafetensorError, ValueError, KeyError) as error:
        raise AdapterError(f"{path} is damaged: {error}. The adapter must be trained again.") from error
    tensors: dict[str, Array] = {}
    for key, value in stored.items():
        if not np.isfinite(value).all():
            raise AdapterError(f"{key} in {path} holds values that are not finite. The adapter must be trained again.")
        tensors[key] = np.ascontiguousarray(value, np.float32)
    return tensors


def _check_fit(header: GgufHeader, base: Path, name: str, a: Array, b: Array) -> None:
    """Does B A have the shape of the base's weight?"""
    weight = header.tensors.get(name)
    if weight is None:
        raise AdapterError(
            f"The adapter changes {name}, which {base.name} does not have. It was trained on another model."
        )
    shape = weight.shape[::-1]  # GGUF names the fastest dimension first
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[1] or (b.shape[0], a.shape[1]) != shape:
        raise AdapterError(
            f"The adapter's shapes for {name}, A {list(a.shape)} and B {list(b.shape)}, do not fit {list(shape)} in "
            f"{base.name}. It was trained on another model."
        )


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

    aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    stored = np.float16 if precision == "f16" else np.float32
    try:
        writer = GGUFWriter(aside, architecture)
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
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.chmod(0o600)
        os.replace(aside, target)
    except OSError as error:
        raise AdapterError(
            f"Cannot write {target}: {error.strerror or error}. Free some space, or make the folder writable."
        ) from error
    finally:
        aside.unlink(missing_ok=True)
