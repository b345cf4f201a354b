"""The base model in torch, from the GGUF file itself. It must never know about adapters, chats or the tokenizer.

Every tensor is dequantised on its own and put into a model built without storage, so that memory holds the model once.
Token ids come from llama.cpp; there is no tokenizer here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from claw_local.adapters.gguf import MODULES, PERMUTED_ARCHITECTURES, unpermute_rows
from claw_local.engine.gguf_file import BLOCKS, GgufHeader
from claw_local.engine.models import LEARNABLE, check_model
from claw_local.errors import ModelError

from .cpu import choose_matmul
from .economy import NF4_BYTES
from .families import BLOCK_NAMES, configure, finish, norms_are_one_less
from .nf4 import put

Precision = Literal["fp32", "bf16"]
DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}

ROPE_FACTORS = "rope_freqs.weight"
"""[d/2] divisors of the rotary frequencies, in the files of models with long contexts (Llama 3.1 and later)."""

CHUNK_VALUES = 1 << 18
"""Values dequantised at once: the temporaries stay in the processor's cache. Row by row it takes four times as long."""

OTHER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


@dataclass(frozen=True)
class BaseModel:
    """The frozen base.

    Attributes:
        model: a transformers causal language model, in eval mode, no parameter trainable.
        architecture: as the GGUF file calls it.
        path: the GGUF file.
    """

    model: Any
    architecture: str
    path: Path


def load_base(
    path: Path,
    *,
    precision: Precision = "fp32",
    exact: bool = False,
    nf4: bool = False,
    on_progress: Callable[[float], None] | None = None,
) -> BaseModel:
    """Build the model of a GGUF file with its weights dequantised.

    Args:
        path: a GGUF file of an architecture in `LEARNABLE`, of any quantisation that the gguf package can undo.
        precision: how weights are held.
        exact: multiply float32 matrices in full float32; see `cpu.choose_matmul`. Holds for the whole process.
        nf4: hold the blocks' linear layers in four bits each, whatever the precision: a seventh of the memory.
        on_progress: called with the share of the tensors that are ready, 0 to 1.

    Raises:
        ModelError: the file cannot be read, does not fit into memory, or its architecture, or something in it, is not
            supported for learning.
    """
    file = GgufFile(path)
    choose_matmul(exact=exact)
    config, build = _configure(file)
    _check_memory(file, DTYPES[precision], nf4=nf4)
    with torch.device("meta"):
        model = build(config)
    state: dict[str, torch.Tensor] = {}
    packed: set[str] = set()
    for name, weight in _weights(file, DTYPES[precision]):
        if nf4 and _is_linear(name):
            put(model, name, weight.float())
            packed.add(name)
        else:
            state[name] = weight
        if on_progress is not None:
            on_progress((len(state) + len(packed)) / len(file.header.tensors))
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    try:
        missing, unexpected = model.load_state_dict(state, strict=not packed, assign=True)
        if unexpected or set(missing) - packed:
            raise RuntimeError(f"not as expected: {', '.join([*unexpected, *sorted(set(missing) - packed)])}.")
    except RuntimeError as error:
        raise ModelError(
            f"The tensors in {path.name} are not those of a model of the architecture {file.architecture}: "
            f"{str(error).splitlines()[-1].strip()} Chatting may work; to learn, use another model file."
        ) from error
    if config.tie_word_embeddings:
        model.lm_head.weight = model.model.embed_tokens.weight
    _build_rope(model, file)
    finish(model)
    model.requires_grad_(False)
    return BaseModel(model.eval(), file.architecture, path)


class GgufFile:
    """A model's GGUF file: its header, and its tensors mapped from disk."""

    def __init__(self, path: Path) -> None:
        """Raises ModelError if the file is not a whole model."""
        self.path = path
        self.header: GgufHeader = check_model(path, on_gpu=True)  # the file itself is not loaded; see _check_memory
        self.architecture = self.header.text("general.architecture")
        self._bytes: npt.NDArray[np.uint8] = np.memmap(path, np.uint8, "r")

    def number(self, key: str, default: float | None = None) -> float:
        """A number of this architecture: `number("block_count")` reads `llama.block_count`.

        Raises:
            ModelError: there is no such number and no default.
        """
        value = self.header.metadata.get(f"{self.architecture}.{key}", default)
        if not isinstance(value, int | float):
            raise ModelError(
                f"{self.path.name} does not give {self.architecture}.{key} as one number, and learning needs it. "
                "Chatting may work; to learn, use another model file."
            )
        return value

    def count(self, key: str, default: int | None = None) -> int:
        """The same, as a whole number."""
        return int(self.number(key, default))

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape, rows first, as torch writes it (GGUF has the fastest dimension first)."""
        return self.header.tensors[name].shape[::-1]

    def values(self, name: str) -> npt.NDArray[np.float32]:
        """[shape] a tensor's values, dequantised.

        Raises:
            ModelError: the gguf package cannot undo this quantisation.
        """
        from gguf import GGMLQuantizationType
        from gguf.quants import dequantize

        tensor = self.header.tensors[name]
        begin = self.header.data_start + tensor.offset
        stored = np.asarray(self._bytes[begin : begin + (tensor.size or 0)])  # [bytes]
        try:
            kind = GGMLQuantizationType(tensor.type)
            block, block_bytes = BLOCKS[tensor.type]
            if kind in (GGMLQuantizationType.F32, GGMLQuantizationType.F16):
                plain = np.float32 if kind == GGMLQuantizationType.F32 else np.float16
                return np.array(stored.view(plain), np.float32).reshape(self.shape(name))
            values = np.empty(self.shape(name), np.float32)
            flat = values.reshape(-1)
            stride = CHUNK_VALUES // block
            for at in range(0, flat.size // block, stride):
                piece = stored[at * block_bytes : (at + stride) * block_bytes]
                flat[at * block : (at + stride) * block] = dequantize(piece.reshape(1, -1), kind)[0]
        except (NotImplementedError, ValueError, KeyError) as error:
            raise ModelError(
                f"Learning cannot undo the quantisation of {name} in {self.path.name} (type {tensor.type}). "
                "Use a file with a common quantisation (Q4_K_M, Q8_0, F16, ...)."
            ) from error
        return values


def _configure(file: GgufFile) -> tuple[Any, Callable[[Any], Any]]:
    """The transformers configuration that a file describes, and the model class for it.

    Raises:
        ModelError: the architecture, or a variant of it, is not supported.
    """
    architecture = file.architecture
    if architecture not in LEARNABLE:
        raise ModelError(
            f"Learning does not support models of the architecture {architecture} ({file.path.name}), only "
            f"{', '.join(sorted(LEARNABLE))}. Chatting may work; to learn, choose a model of one of those."
        )
    scaling = file.header.text(f"{architecture}.rope.scaling.type") or "none"
    if scaling not in ("none", "linear"):
        raise ModelError(
            f"{file.path.name} stretches its context by the method {scaling}, which learning does not support. "
            "Chatting may work; to learn, use another model file."
        )
    if file.number("expert_count", 0):
        raise ModelError(
            f"{file.path.name} is a mixture of experts, which learning does not support. "
            "Chatting may work; to learn, use another model file."
        )
    if "token_embd.weight" not in file.header.tensors:
        raise ModelError(
            f"{file.path.name} has no token embedding: it is not a whole language model. Use another file."
        )
    heads, width = file.count("attention.head_count"), file.count("embedding_length")
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": file.number("rope.freq_base", 10000.0)}
    if scaling == "linear":
        rope |= {"rope_type": "linear", "factor": file.number("rope.scaling.factor")}
    values = {
        "vocab_size": file.shape("token_embd.weight")[0],
        "hidden_size": width,
        "intermediate_size": file.count("feed_forward_length"),
        "num_hidden_layers": file.count("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": file.count("attention.head_count_kv", heads),
        "head_dim": file.count("attention.key_length", width // heads),
        "max_position_embeddings": file.count("context_length"),
        "rms_norm_eps": file.number("attention.layer_norm_rms_epsilon"),
        "rope_parameters": rope,
        "tie_word_embeddings": "output.weight" not in file.header.tensors,
        "use_cache": False,
    }
    return configure(file, values)


def _is_linear(name: str) -> bool:
    """Whether a weight, by its transformers name, is one of a block's linear layers."""
    return name.endswith(".weight") and ".".join(name.split(".")[3:5]) in MODULES


def _check_memory(file: GgufFile, dtype: torch.dtype, *, nf4: bool = False) -> None:
    """Raises ModelError if the dequantised weights do not fit into what memory is free."""
    import psutil

    need = 0.0
    for name, tensor in file.header.tensors.items():
        small = nf4 and name.split(".")[-2] in MODULES.values() and name.endswith(".weight")
        need += math.prod(tensor.shape) * (NF4_BYTES if small else dtype.itemsize)
    free = int(psutil.virtual_memory().available)
    if need > free:
        raise ModelError(
            f"Learning with {file.path.name} needs about {need / 2**30:.1f} GiB of memory for its weights, and "
            f"{free / 2**30:.1f} GiB are free. Close other programs, or learn with a smaller model."
        )


def _weights(file: GgufFile, dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor]]:
    """Each tensor under its transformers name, dequantised, rows of q and k in transformers' order."""
    heads = file.count("attention.head_count")
    permuted = {"attn_q": heads, "attn_k": file.count("attention.head_count_kv", heads)}
    if file.architecture not in PERMUTED_ARCHITECTURES:
        permuted = {}
    for name in file.header.tensors:
        if name == ROPE_FACTORS:
            continue
        translated, part = _transformers_name(file, name)
        values = file.values(name)
        if part in permuted:
            values = unpermute_rows(values, permuted[part])
        if part.endswith("_norm") and norms_are_one_less(file.architecture):
            values = values - 1.0
        yield translated, torch.from_numpy(np.ascontiguousarray(values)).to(dtype)


def _transformers_name(file: GgufFile, name: str) -> tuple[str, str]:
    """`blk.3.attn_q.weight` -> (`model.layers.3.self_attn.q_proj.weight`, `attn_q`).

    Raises:
        ModelError: no such part is known.
    """
    place, _, kind = name.rpartition(".")
    if place.startswith("blk."):
        _, block, part = place.split(".", 2)
        if (known := BLOCK_NAMES[file.architecture].get(part)) is not None:
            return f"model.layers.{block}.{known}.{kind}", part
    elif place in OTHER_NAMES:
        return f"{OTHER_NAMES[place]}.{kind}", place
    raise ModelError(
        f"{file.path.name} has a tensor {name}, which learning cannot place in a model of the architecture "
        f"{file.architecture}. Chatting may work; to learn, use another model file."
    )


def _build_rope(model: Any, file: GgufFile) -> None:
    """Compute the rotary frequencies, which no file stores and the model was built without."""
    rotary = type(model.model.rotary_emb)(config=model.config)
    if ROPE_FACTORS in file.header.tensors:
        rotary.inv_freq = rotary.inv_freq / torch.from_numpy(file.values(ROPE_FACTORS))  # [d/2]
    model.model.rotary_emb = rotary
