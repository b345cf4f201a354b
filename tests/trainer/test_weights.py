"""The base model out of the GGUF file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from claw_local.errors import ModelError
from claw_trainer.weights import GgufFile, load_base


def test_a_file_without_output_weights_ties_them_to_the_embedding(tiny_models: dict[str, Path]) -> None:
    tied, own = load_base(tiny_models["llama"]).model, load_base(tiny_models["qwen2"]).model
    assert tied.lm_head.weight is tied.model.embed_tokens.weight
    assert own.lm_head.weight is not own.model.embed_tokens.weight


def test_nothing_of_the_base_can_be_trained_and_progress_ends_at_one(tiny_models: dict[str, Path]) -> None:
    seen: list[float] = []
    base = load_base(tiny_models["llama"], on_progress=seen.append)
    assert not any(parameter.requires_grad for parameter in base.model.parameters())
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_bf16_halves_what_the_weights_take(tiny_models: dict[str, Path]) -> None:
    base = load_base(tiny_models["qwen2"], precision="bf16")
    assert {parameter.dtype for parameter in base.model.parameters()} == {torch.bfloat16}


def test_quantised_tensors_come_out_as_the_gguf_package_undoes_them(model_path: Path) -> None:
    file = GgufFile(model_path)
    name = "blk.0.ffn_down.weight"
    tensor = file.header.tensors[name]
    begin = file.header.data_start + tensor.offset
    stored = np.fromfile(model_path, np.uint8, tensor.size or 0, offset=begin).reshape(file.shape(name)[0], -1)
    kind = gguf.GGMLQuantizationType(tensor.type)
    assert kind == gguf.GGMLQuantizationType.Q4_1
    assert np.array_equal(file.values(name), gguf.quants.dequantize(stored, kind))


def test_an_architecture_that_is_not_supported_is_refused_in_a_sentence(
    tmp_path: Path, make_tiny: Callable[..., Path]
) -> None:
    with pytest.raises(ModelError, match=r"architecture phi3 .* only gemma3, llama, qwen2, qwen3"):
        load_base(make_tiny(tmp_path / "other.gguf", "phi3"))


def test_a_tensor_that_has_no_place_is_named(tmp_path: Path, make_tiny: Callable[..., Path]) -> None:
    path = make_tiny(tmp_path / "tiny.gguf", "llama")
    path.write_bytes(path.read_bytes().replace(b"blk.1.ffn_gate.weight", b"blk.1.ffn_gats.weight"))
    with pytest.raises(ModelError, match=r"blk\.1\.ffn_gats\.weight"):
        load_base(path)


def test_a_missing_tensor_is_named(tmp_path: Path, make_tiny: Callable[..., Path]) -> None:
    path = make_tiny(tmp_path / "tiny.gguf", "llama")
    path.write_bytes(path.read_bytes().replace(b"blk.1.ffn_gate.weight", b"blk.0.ffn_gate.weight"))
    with pytest.raises(ModelError, match="Missing key"):
        load_base(path)


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, make_tiny: Callable[..., Path]) -> None:
    path = make_tiny(tmp_path / "tiny.gguf", "llama")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelError, match="cut short"):
        load_base(path)
