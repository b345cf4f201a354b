"""GGUF LoRAs that lie below the one being trained, added into the base's weights. It must never write any.

Format: as `claw_local.adapters.gguf` writes it. For each weight W a pair `W.lora_a` [r, in], `W.lora_b` [out, r]; the
update is (alpha / r) · B A. Rows of q and k of llama-family models are in GGUF's order.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from claw_local.adapters.gguf import MODULES, PERMUTED_ARCHITECTURES, unpermute_rows
from claw_local.errors import AdapterError

from .weights import BaseModel

_NAMES = {gguf: transformers for transformers, gguf in MODULES.items()}


@torch.no_grad()
def add_lora(base: BaseModel, lora: Path) -> None:
    """W += scale · B A for each weight the LoRA has. The base is changed in place.

    Raises:
        AdapterError: the file cannot be read, or does not fit the base.
    """
    from gguf import GGUFReader

    try:
        reader = GGUFReader(lora)
        alpha = float(reader.fields["adapter.lora.alpha"].contents())
        tensors = {tensor.name: np.array(tensor.data, np.float32) for tensor in reader.tensors}
    except (OSError, ValueError, KeyError) as error:
        raise AdapterError(
            f"The judge's adapter {lora} cannot be read: {error}. Set judge.adapter to another."
        ) from error
    heads = {"attn_q": base.model.config.num_attention_heads, "attn_k": base.model.config.num_key_value_heads}
    for name in [name.removesuffix(".lora_a") for name in tensors if name.endswith(".lora_a")]:
        _, block, part, _ = name.split(".")
        a, b = tensors[f"{name}.lora_a"], tensors[f"{name}.lora_b"]  # [r, in], [out, r]
        if base.architecture in PERMUTED_ARCHITECTURES and part in heads:
            b = unpermute_rows(b, heads[part])
        weight = base.model.get_submodule(f"model.layers.{block}.{_NAMES[part]}").weight  # [out, in]
        update = torch.from_numpy(np.ascontiguousarray(b)) @ torch.from_numpy(np.ascontiguousarray(a))
        if update.shape != weight.shape:
            raise AdapterError(
                f"The judge's adapter {lora} does not fit {base.path.name}. Set judge.adapter to another."
            )
        weight += (alpha / a.shape[0] * update).to(weight.dtype)
