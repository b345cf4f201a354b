"""Linear layers whose weights lie in four bits (NF4; QLoRA, arXiv 2305.14314). It must never know whose they are."""

from __future__ import annotations

from typing import Any

import torch


def put(model: Any, name: str, weight: torch.Tensor) -> None:
    """Replace a linear layer of a model, which may still be without storage, by one with this weight in NF4.

    Args:
        name: the weight's, such as `model.layers.0.mlp.up_proj.weight`.
        weight: [out, in] float32. Its blocks' scales stay float32.
    """
    import bitsandbytes

    place = name.removesuffix(".weight")
    plain = model.get_submodule(place)
    outputs, inputs = weight.shape
    layer = bitsandbytes.nn.Linear4bit(
        inputs,
        outputs,
        bias=plain.bias is not None,
        compute_dtype=torch.float32,
        compress_statistics=False,
        quant_type="nf4",
        device="meta",
    )
    layer.support_avx512bf16_for_cpu = False  # It would lay the weights out anew at the first look without gradients.
    packed = bitsandbytes.nn.Params4bit(
        weight, requires_grad=False, compress_statistics=False, quant_type="nf4", module=layer
    )
    layer.weight = packed.to("cpu")
    model.set_submodule(place, layer)
    model.is_loaded_in_4bit = True  # PEFT asks for it
