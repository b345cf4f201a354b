"""What is exported means the same to PEFT, loaded from its folder, and to llama.cpp, loaded from its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from claw_local import Assistant
from claw_local.adapters.gguf import convert_lora
from claw_local.adapters.registry import file_sha256
from claw_local.engine.base import AdapterSlot
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.settings import ModelSettings
from claw_trainer.policy import Policy
from claw_trainer.weights import load_base

TEXT = "In the morning she made tea, read the newspaper and walked to the small station by the river."


def logprobs(logits: np.ndarray, token_ids: list[int]) -> np.ndarray:
    """[T - 1] log-probabilities of token_ids[1:] from [T, V] logits."""
    shifted = logits.astype("f8") - logits.max(1, keepdims=True)
    return (shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))[np.arange(len(token_ids) - 1), token_ids[1:]]


def by_peft(base: Path, folder: Path, token_ids: list[int]) -> np.ndarray:
    """As anyone else would load the folder."""
    from peft import PeftModel

    model = PeftModel.from_pretrained(load_base(base, exact=True).model, str(folder)).eval()
    with torch.no_grad():
        found = model(input_ids=torch.tensor([token_ids]), use_cache=False).logits[0]
    return logprobs(found.float().numpy(), token_ids)


def by_llama_cpp(base: Path, adapters: list[AdapterSlot]) -> tuple[list[int], np.ndarray, np.ndarray]:
    with LlamaCppEngine.open(base, ModelSettings(context=512, threads=1), cache_dir=None) as engine:
        ids = engine.tokenize(TEXT)
        before = logprobs(engine.logits(ids, start=0), ids)
        engine.set_adapters(adapters)
        return ids, before, logprobs(engine.logits(ids, start=0), ids)


def trained(assistant: Assistant, base: Path, make_random: Callable[..., None], size: float, seed: int = 3) -> int:
    """An adapter as a training run leaves it."""
    policy = Policy(load_base(base, exact=True), rank=4, alpha=8)
    make_random(policy, size, seed)
    folder = assistant.paths.adapters / f"run-{seed}"
    folder.mkdir(parents=True)
    convert_lora(policy.save(folder / "peft"), base, folder / "adapter.gguf")
    return assistant.store.adapters.add(
        parent_id=0,
        model_sha256=assistant.model_sha256,
        architecture="llama",
        peft_dir=str(folder / "peft"),
        gguf_path=str(folder / "adapter.gguf"),
        sha256={name: file_sha256(folder / name) for name in ("adapter.gguf", "peft/adapter_model.safetensors")},
    ).id


@pytest.mark.parametrize(("kind", "bound", "size"), [("tiny", 3e-3, 0.12), ("embedded", 0.12, 0.048)])
def test_peft_and_llama_cpp_give_the_same_answers_after_export_and_after_import(
    kind: str,
    bound: float,
    size: float,
    tiny_models: dict[str, Path],
    model_path: Path,
    tmp_path: Path,
    make_random: Callable[..., None],
) -> None:
    # On the embedded model what is left is the rounding of its quantised products (DESIGN §5: 0.08 on average).
    base = tiny_models["llama"] if kind == "tiny" else model_path
    with Assistant.open(tmp_path / "one", model=base) as first, Assistant.open(tmp_path / "two", model=base) as second:
        adapter = trained(first, base, make_random, size)
        there = second.adapters.import_file(first.adapters.export(adapter, tmp_path / "me.claw")).record
        folder = second.adapters.export(there.id, tmp_path / "folder", "peft")
        lone = second.adapters.export(there.id, tmp_path / "lora.gguf", "gguf")
    token_ids, before, after = by_llama_cpp(base, [AdapterSlot(lone)])
    effect = np.abs(after - before).mean()
    apart = np.abs(by_peft(base, folder, token_ids) - after).mean()
    assert effect > 0.3
    assert apart < bound
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == base.name


def test_a_mix_says_what_its_parts_say_together(
    tiny_models: dict[str, Path], tmp_path: Path, make_random: Callable[..., None]
) -> None:
    base = tiny_models["llama"]
    with Assistant.open(tmp_path / "home", model=base) as assistant:
        parts = [trained(assistant, base, make_random, 0.12, seed) for seed in (1, 2)]
        paths = [Path(assistant.adapters.get(part).gguf_path) for part in parts]
        mixed = assistant.adapters.use([f"{parts[0]}:0.7", f"{parts[1]}:0.3"])
        assert mixed is not None
    weighted = [AdapterSlot(path, scale) for path, scale in zip(paths, (0.7, 0.3), strict=True)]
    _, before, together = by_llama_cpp(base, weighted)
    _, _, as_one = by_llama_cpp(base, [AdapterSlot(Path(mixed.gguf_path))])
    assert np.abs(together - before).mean() > 0.3
    assert np.abs(as_one - together).mean() < 3e-3
