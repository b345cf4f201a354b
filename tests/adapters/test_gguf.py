"""PEFT's LoRA files to a GGUF LoRA, without torch. That the numbers mean the same is tested with the trainer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from claw_local.adapters.gguf import MODULES, convert_lora, permute_rows, unpermute_rows
from claw_local.engine.base import AdapterSlot
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import AdapterError, ModelError
from claw_local.settings import ModelSettings

RANK = 4
SIZES = {"q": (576, 576), "k": (192, 576), "v": (192, 576), "o": (576, 576)} | {
    "gate": (1536, 576),
    "up": (1536, 576),
    "down": (576, 1536),
}
"""Rows and columns of the embedded model's linear layers."""


def matrices(blocks: int = 2) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    found = {}
    for block in range(blocks):
        for module in MODULES:
            rows, columns = SIZES[module.split(".")[1].removesuffix("_proj")]
            key = f"base_model.model.model.layers.{block}.{module}"
            found[f"{key}.lora_A.weight"] = random.standard_normal((RANK, columns)).astype(np.float32) * 0.02
            found[f"{key}.lora_B.weight"] = random.standard_normal((rows, RANK)).astype(np.float32) * 0.02
    return found


def write_peft(folder: Path, tensors: dict[str, np.ndarray], **config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": RANK, "lora_alpha": 8, **config}))
    return folder


def stored(path: Path) -> dict[str, np.ndarray]:
    return {tensor.name: np.array(tensor.data) for tensor in gguf.GGUFReader(path).tensors}


def test_rows_are_permuted_as_llama_cpp_wants_them() -> None:
    # one head of 6: the halves 0 1 2 | 3 4 5 are interleaved
    assert permute_rows(np.arange(6), 1).tolist() == [0, 3, 1, 4, 2, 5]
    # two heads of 4
    assert permute_rows(np.arange(8), 2).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 3))
def test_unpermuting_undoes_permuting(heads: int, half: int, columns: int) -> None:
    rows = np.arange(heads * half * 2 * columns).reshape(-1, columns)
    assert np.array_equal(unpermute_rows(permute_rows(rows, heads), heads), rows)


def test_names_shapes_and_values_arrive_and_only_q_and_k_are_permuted(model_path: Path, tmp_path: Path) -> None:
    tensors = matrices()
    path = convert_lora(write_peft(tmp_path / "peft", tensors), model_path, tmp_path / "adapter.gguf")
    reader = gguf.GGUFReader(path)
    found = stored(path)
    assert len(found) == 2 * 7 * 2
    assert reader.fields["general.type"].contents() == "adapter"
    assert reader.fields["general.architecture"].contents() == "llama"
    assert reader.fields["adapter.type"].contents() == "lora"
    assert reader.fields["adapter.lora.alpha"].contents() == 8.0
    key = "base_model.model.model.layers.1"
    assert np.array_equal(found["blk.1.ffn_down.weight.lora_a"], tensors[f"{key}.mlp.down_proj.lora_A.weight"])
    assert np.array_equal(found["blk.1.ffn_down.weight.lora_b"], tensors[f"{key}.mlp.down_proj.lora_B.weight"])
    b = tensors[f"{key}.self_attn.k_proj.lora_B.weight"]
    assert np.array_equal(found["blk.1.attn_k.weight.lora_b"], permute_rows(b, 3))
    assert np.array_equal(found["blk.1.attn_q.weight.lora_a"], tensors[f"{key}.self_attn.q_proj.lora_A.weight"])


def test_the_same_input_gives_the_same_bytes_and_nothing_is_left_aside(model_path: Path, tmp_path: Path) -> None:
    folder = write_peft(tmp_path / "peft", matrices())
    first = convert_lora(folder, model_path, tmp_path / "one.gguf").read_bytes()
    target = tmp_path / "two.gguf"
    target.write_bytes(b"something older")
    assert convert_lora(folder, model_path, target).read_bytes() == first
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["one.gguf", "peft", "two.gguf"]


def test_rank_stabilised_scaling_becomes_alpha(model_path: Path, tmp_path: Path) -> None:
    folder = write_peft(tmp_path / "peft", matrices(), use_rslora=True)
    path = convert_lora(folder, model_path, tmp_path / "adapter.gguf")
    # alpha / √r = 8 / 2 = 4 must equal alpha' / r, so alpha' = 16
    assert gguf.GGUFReader(path).fields["adapter.lora.alpha"].contents() == 16.0


def test_llama_cpp_loads_it(model_path: Path, tmp_path: Path) -> None:
    path = convert_lora(write_peft(tmp_path / "peft", matrices(30)), model_path, tmp_path / "adapter.gguf")
    engine = LlamaCppEngine.open(model_path, ModelSettings(context=512), cache_dir=None)
    try:
        base = engine.logits([1, 2, 3], start=2)
        engine.set_adapters([AdapterSlot(path)])
        assert not np.array_equal(engine.logits([1, 2, 3], start=2), base)
    finally:
        engine.close()


def broken(kind: str) -> dict[str, np.ndarray]:
    tensors = matrices(1)
    a = "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"
    if kind == "nan":
        tensors[a][1, 1] = np.nan
    elif kind == "shape":
        tensors[a] = tensors[a][:, :-1].copy()
    elif kind == "half":
        del tensors[a]
    elif kind == "block":
        tensors[a.replace("layers.0", "layers.99")] = tensors.pop(a)
        b = a.replace("lora_A", "lora_B")
        tensors[b.replace("layers.0", "layers.99")] = tensors.pop(b)
    elif kind == "embedding":
        tensors["base_model.model.model.embed_tokens.lora_embedding_A"] = np.zeros((4, 4), np.float32)
    elif kind == "empty":
        tensors.clear()
    return tensors


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("nan", r"mlp\.up_proj.* not finite"),
        ("shape", r"do not fit \[1536, 576\]"),
        ("half", "lacks half of mlp.up_proj in block 0"),
        ("block", r"blk\.99\.ffn_up\.weight.*another model"),
        ("embedding", "embed_tokens"),
        ("empty", "is empty"),
    ],
)
def test_what_does_not_fit_is_refused_by_name_and_nothing_is_written(
    model_path: Path, tmp_path: Path, kind: str, words: str
) -> None:
    folder = write_peft(tmp_path / "peft", broken(kind))
    with pytest.raises(AdapterError, match=words):
        convert_lora(folder, model_path, tmp_path / "adapter.gguf")
    assert [entry.name for entry in tmp_path.iterdir()] == ["peft"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"bias": "all"}, "bias"),
        ({"alpha_pattern": {"q_proj": 4}}, "alpha_pattern"),
        ({"peft_type": "IA3"}, "does not describe a LoRA"),
    ],
)
def test_adapters_that_llama_cpp_cannot_apply_are_refused(
    model_path: Path, tmp_path: Path, config: dict[str, Any], words: str
) -> None:
    folder = write_peft(tmp_path / "peft", matrices(1), **config)
    with pytest.raises(AdapterError, match=words):
        convert_lora(folder, model_path, tmp_path / "adapter.gguf")


def test_missing_or_damaged_files_are_said_in_a_sentence(model_path: Path, tmp_path: Path) -> None:
    target = tmp_path / "adapter.gguf"
    with pytest.raises(AdapterError, match=r"Cannot read .*adapter_config\.json"):
        convert_lora(tmp_path, model_path, target)
    folder = write_peft(tmp_path / "peft", matrices(1))
    whole = (folder / "adapter_model.safetensors").read_bytes()
    (folder / "adapter_model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AdapterError, match="is damaged"):
        convert_lora(folder, model_path, target)
    (folder / "adapter_model.safetensors").write_bytes(whole)
    with pytest.raises(ModelError):
        convert_lora(folder, tmp_path / "none.gguf", target)
    with pytest.raises(AdapterError, match="Cannot write"):
        convert_lora(folder, model_path, tmp_path / "no such folder" / "adapter.gguf")
