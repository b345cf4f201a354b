"""The base model in torch, from the GGUF file itself. It must never know about adapters, chats or the tokenizer.

Every tensor is read on its own and put into a model built without storage, so that memory holds the model once.
Token ids come from llama.cpp; there is no tokenizer here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from claw_local.adapters.gguf import MODULES, PERMUTED_ARCHITECTURES, unpermute_rows
from claw_local.engine.models import LEARNABLE
from claw_local.errors import ModelError

from . import as_in_file, nf4
from .cpu import choose_matmul
from .economy import Holding, Sizes
from .families import BLOCK_NAMES, configure, finish, norms_are_one_less
from .gguf_tensors import GgufFile

__all__ = ["BaseModel", "GgufFile", "load_base"]

Precision = Literal["fp32", "bf16"]
DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}

ROPE_FACTORS = "rope_freqs.weight"
"""[d/2] divisors of the rotary frequencies, in the files of models with long contexts (Llama 3.1 and later)."""

TIED = "token_embd"
OTHER_NAMES = {TIED: "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


@dataclass(frozen=True)
class BaseModel:
    """The frozen base.

    Attributes:
        model: a transformers causal language model, in eval mode, no parameter trainable.
        architecture: as the GGUF file calls it.
        path: the GGUF file.
        served: it rounds as llama.cpp does.
    """

    model: Any
    architecture: str
    path: Path
    served: bool = False


def load_base(
    path: Path,
    *,
    precision: Precision = "fp32",
    exact: bool = False,
    hold: Holding = "dequantised",
    served: bool = False,
    on_progress: Callable[[float], None] | None = None,
) -> BaseModel:
    """Build the model of a GGUF file.

    Args:
        path: a GGUF file of an architecture in `LEARNABLE`, of any quantisation that the gguf package can undo.
        precision: how dequantised weights are held.
        exact: multiply float32 matrices in full float32; see `cpu.choose_matmul`. Holds for the whole process.
        hold: how the matrices are held: `dequantised`; `as-in-file`, in the file's own blocks; or `nf4`, the blocks'
            linear layers in four bits each and the others as in the file.
        served: round what is multiplied with the file's own blocks, and what attention multiplies, as llama.cpp does on
            a processor; multiplies in full float32.
        on_progress: called with the share of the tensors that are ready, 0 to 1.

    Raises:
        ModelError: the file cannot be read, does not fit into memory, or its architecture, or something in it, is not
            supported for learning.
    """
    file = GgufFile(path)
    choose_matmul(exact=exact or served)
    config, build = _configure(file)
    _check_memory(file, precision, hold)
    with torch.device("meta"):
        model = build(config)
    state: dict[str, torch.Tensor] = {}
    packed: set[str] = set()
    names = [name for name in file.header.tensors if name != ROPE_FACTORS]
    for count, name in enumerate(names, 1):
        translated, part = _transformers_name(file, name)
        found = file.blocks(name) if hold != "dequantised" else None
        _check_shape(model, file, name, translated)
        if hold == "nf4" and _is_linear(translated):
            nf4.put(model, translated, torch.from_numpy(_values(file, name, part)))
            packed.add(translated)
        elif found is not None:
            stored, kind = found
            if heads := _permuted(file, part):
                stored = torch.from_numpy(np.ascontiguousarray(unpermute_rows(stored.numpy(), heads)))
            for target in [translated, *(["lm_head.weight"] if part == TIED and config.tie_word_embeddings else [])]:
                as_in_file.put(model, target, stored, kind, dtype=DTYPES[precision], served=served)
                packed.add(target)
        else:
            state[translated] = torch.from_numpy(_values(file, name, part)).to(DTYPES[precision])
        if on_progress is not None:
            on_progress(count / len(names))
    return BaseModel(_fill(model, config, file, state, packed), file.architecture, path, served)


def _check_shape(model: Any, file: GgufFile, name: str, translated: str) -> None:
    """Raises ModelError: the model has no such tensor, or one of another shape."""
    try:
        expected = tuple(model.get_parameter(translated).shape)
    except AttributeError:
        expected = ()
    if expected != file.shape(name):
        raise ModelError(
            f"{name} in {file.path.name} is {list(file.shape(name))}, which is not what a model of the architecture "
            f"{file.architecture} with these settings has. Chatting may work; to learn, use another model file."
        )


def _fill(model: Any, config: Any, file: GgufFile, state: dict[str, torch.Tensor], packed: set[str]) -> Any:
    """Give a model its dequantised tensors; those in `packed` it has. Returns it, frozen."""
    tied = config.tie_word_embeddings and "lm_head.weight" not in packed
    if tied:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    try:
        missing, unexpected = model.load_state_dict(state, strict=not packed, assign=True)
        if unexpected or set(missing) - packed:
            raise RuntimeError(f"not as expected: {', '.join([*unexpected, *sorted(set(missing) - packed)])}.")
    except RuntimeError as error:
        raise ModelError(
            f"The tensors in {file.path.name} are not those of a model of the architecture {file.architecture}: "
            f"{str(error).splitlines()[-1].strip()} Chatting may work; to learn, use another model file."
        ) from error
    if tied:
        model.lm_head.weight = model.model.embed_tokens.weight
    _build_rope(model, file)
    finish(model)
    model.requires_grad_(False)
    return model.eval()


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


def _check_memory(file: GgufFile, precision: Precision, hold: Holding) -> None:
    """Raises ModelError if the weights do not fit into what memory is free."""
    import psutil

    need = Sizes.of(file.header, 0).weight_bytes(hold, DTYPES[precision].itemsize)
    free = int(psutil.virtual_memory().available)
    if need > free:
        raise ModelError(
            f"Learning with {file.path.name} needs about {need / 2**30:.1f} GiB of memory for its weights, and "
            f"{free / 2**30:.1f} GiB are free. Close other programs, or learn with a smaller model."
        )


def _permuted(file: GgufFile, part: str) -> int:
    """The heads whose rows are in another order in the file than in transformers; 0 if they are in the same."""
    if file.architecture not in PERMUTED_ARCHITECTURES or part not in ("attn_q", "attn_k"):
        return 0
    heads = file.count("attention.head_count")
    return heads if part == "attn_q" else file.count("attention.head_count_kv", heads)


def _values(file: GgufFile, name: str, part: str) -> Any:
    """A tensor, dequantised, as transformers keeps it: rows of q and k in its order, norms around what it adds."""
    values, heads = file.values(name), _permuted(file, part)
    if part.endswith("_norm") and norms_are_one_less(file.architecture):
        values = values - 1.0
    return np.ascontiguousarray(unpermute_rows(values, heads)) if heads else values


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
