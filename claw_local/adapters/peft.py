"""LoRAs as PEFT keeps them: adapter_config.json and adapter_model.safetensors. It must never know about torch.

Format: https://huggingface.co/docs/peft/developer_guides/checkpoint. Only safetensors are read, never a pickle.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AdapterError
from ..files import write_whole
from ..language import _

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"

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

KEY = re.compile(r"^base_model\.model\.model\.layers\.(\d{1,4})\.(\S+?)\.lora_(A|B)\.weight$")
LONGEST_CONFIG = 1 << 20

Place = tuple[int, str]
"""Block, and module as in `MODULES`."""


@dataclass(frozen=True)
class PeftLora:
    """A LoRA as PEFT stores it.

    Attributes:
        alpha: numerator of the scale alpha / r.
        weights: (block, module as in `MODULES`) -> (A [r, in], B [out, r]).
        base_name: what its base is called where it was made; "" if nobody says.
    """

    alpha: float
    weights: dict[Place, tuple[Array, Array]]
    base_name: str = ""

    @property
    def ranks(self) -> frozenset[int]:
        """The ranks r of its layers: one number, unless it is an unusual LoRA."""
        return frozenset(a.shape[0] for a, _ in self.weights.values())

    @property
    def rank(self) -> int:
        return max(self.ranks)

    @property
    def modules(self) -> list[str]:
        """The last parts of the modules' names, as PEFT's target_modules names them, sorted."""
        return sorted({module.split(".")[1] for _, module in self.weights})

    @property
    def blocks(self) -> int:
        """How many blocks have an update."""
        return len({block for block, _ in self.weights})


def read_peft(folder: Path) -> PeftLora:
    """Read a PEFT LoRA.

    Raises:
        AdapterError: a file is missing or damaged, a value is not finite, or it is not a plain LoRA on linear layers.
    """
    config = _read_config(folder / CONFIG)
    tensors = _read_tensors(folder / WEIGHTS)
    halves: dict[Place, dict[str, Array]] = {}
    for key, tensor in tensors.items():
        match = KEY.match(key)
        if match is None or match[2] not in MODULES:
            raise AdapterError(
                _(
                    "The adapter in {folder} changes {key}, which cannot be applied while "
                    "chatting. Train it on the linear layers of the blocks only.",
                    folder=folder,
                    key=key[:120],
                )
            )
        halves.setdefault((int(match[1]), match[2]), {})[match[3]] = tensor
    if not halves:
        raise AdapterError(_("The adapter in {folder} is empty. Train it again.", folder=folder))
    weights: dict[Place, tuple[Array, Array]] = {}
    for place, pair in halves.items():
        if set(pair) != {"A", "B"}:
            raise AdapterError(
                _(
                    "The adapter in {folder} lacks half of {module} in block {block}. Train it again.",
                    folder=folder,
                    module=place[1],
                    block=place[0],
                )
            )
        weights[place] = (pair["A"], pair["B"])
    first = next(iter(weights.values()))[0]
    rank = first.shape[0] if first.ndim == 2 else 1
    alpha = config["lora_alpha"]
    # rank-stabilised LoRA scales by alpha / sqrt(r); llama.cpp always by alpha / r
    scaled = alpha * rank**0.5 if config.get("use_rslora") else alpha
    return PeftLora(scaled, weights, plain_name(config.get("base_model_name_or_path")))


def plain_name(value: object) -> str:
    """The last part of a model's name or path, harmless and short."""
    last = str(value or "").replace("\\", "/").rstrip("/").rpartition("/")[2]
    return "".join(c for c in last if c.isprintable())[:120]


def write_peft(lora: PeftLora, folder: Path) -> Path:
    """Write a LoRA as PEFT does. The same LoRA gives the same bytes.

    Args:
        lora: of one rank; layers that a module of it has in no block of `lora.weights` stay without an update.
        folder: made if it is not there.

    Raises:
        AdapterError: it cannot be written.
    """
    from safetensors.numpy import save

    alpha = int(lora.alpha) if float(lora.alpha).is_integer() else lora.alpha
    config = {
        "base_model_name_or_path": lora.base_name,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "modules_to_save": None,
        "peft_type": "LORA",
        "r": lora.rank,
        "target_modules": lora.modules,
        "task_type": "CAUSAL_LM",
        "use_dora": False,
        "use_rslora": False,
    }
    tensors = {}
    for (block, module), (a, b) in sorted(lora.weights.items()):
        for half, matrix in (("A", a), ("B", b)):
            tensors[f"base_model.model.model.layers.{block}.{module}.lora_{half}.weight"] = matrix
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / CONFIG, (json.dumps(config, indent=2, sort_keys=True) + "\n").encode())
        write_whole(folder / WEIGHTS, save(tensors, {"format": "pt"}))
    except OSError as error:
        raise AdapterError(
            _(
                "Cannot write the adapter to {folder}: {error}. Free some space, or make the folder writable.",
                folder=folder,
                error=error.strerror or error,
            )
        ) from error
    return folder


def _read_config(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LONGEST_CONFIG:
            raise AdapterError(
                _("{path} is far too long to be what describes a LoRA. Choose a LoRA adapter's folder.", path=path)
            )
        config = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise AdapterError(
            _(
                "Cannot read {path}: {error}. The adapter must be trained again.",
                path=path,
                error=error.strerror or error,
            )
        ) from error
    except (ValueError, RecursionError) as error:
        raise AdapterError(
            _("{path} is damaged: {error}. The adapter must be trained again.", path=path, error=str(error)[:200])
        ) from error
    if not isinstance(config, dict) or config.get("peft_type") != "LORA" or "lora_alpha" not in config:
        raise AdapterError(_("{path} does not describe a LoRA. Choose the folder of a LoRA adapter.", path=path))
    cannot = [key for key in ("use_dora", "rank_pattern", "alpha_pattern", "modules_to_save") if config.get(key)]
    if config.get("bias", "none") != "none":
        cannot.append("bias")
    if cannot:
        raise AdapterError(
            _(
                "The adapter in {folder} uses {cannot}, which cannot be applied while chatting. Train a plain LoRA.",
                folder=path.parent,
                cannot=", ".join(cannot),
            )
        )
    alpha = config["lora_alpha"]
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not _is_scale(alpha):
        raise AdapterError(
            _(
                "{path} gives lora_alpha as {alpha}, which is no number above 0. Mend it.",
                path=path,
                alpha=str(alpha)[:40],
            )
        )
    config["lora_alpha"] = float(alpha)
    return config


def _is_scale(alpha: float) -> bool:
    try:
        return math.isfinite(alpha) and 0 < alpha < 1e6
    except OverflowError:
        return False


def _read_tensors(path: Path) -> dict[str, Array]:
    """All matrices as float32, checked to be finite."""
    import numpy as np
    from safetensors import SafetensorError, deserialize

    kinds: dict[str, Any] = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}
    pickled = next((name for name in ("adapter_model.bin", "adapter_model.pt") if (path.parent / name).exists()), None)
    if pickled and not path.exists():
        raise AdapterError(
            _(
                "{folder} holds {pickled}, a pickle, which may run a program when it is opened "
                "and never is here. Save the adapter as safetensors (PEFT does unless told "
                "otherwise).",
                folder=path.parent,
                pickled=pickled,
            )
        )
    try:
        stored = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except OSError as error:
        raise AdapterError(
            _(
                "Cannot read {path}: {error}. The adapter must be trained again.",
                path=path,
                error=error.strerror or error,
            )
        ) from error
    except (SafetensorError, ValueError, KeyError, OverflowError) as error:
        raise AdapterError(
            _("{path} is damaged: {error}. The adapter must be trained again.", path=path, error=str(error)[:200])
        ) from error
    tensors: dict[str, Array] = {}
    for key, entry in stored:
        if entry["dtype"] not in kinds:
            raise AdapterError(
                _(
                    "{key} in {path} is stored as {type}. Save the adapter as F32 or BF16.",
                    key=key[:120],
                    path=path,
                    type=entry["dtype"],
                )
            )
        value = np.frombuffer(entry["data"], kinds[entry["dtype"]])
        if entry["dtype"] == "BF16":  # the upper half of a float32
            value = (value.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(over="ignore"):
            matrix = np.ascontiguousarray(value.reshape(entry["shape"]), np.float32)
        if not np.isfinite(matrix).all():
            raise AdapterError(
                _(
                    "{key} in {path} holds values that are not finite. The adapter must be trained again.",
                    key=key[:120],
                    path=path,
                )
            )
        tensors[key] = matrix
    return tensors
