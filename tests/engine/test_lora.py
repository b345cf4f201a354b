"""Adapters on a running model: set, scaled, unset, and refused when they are bad."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from claw_local.engine.base import AdapterSlot, Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import AdapterError

from .conftest import LINEAR, write_lora

SAMPLING = Sampling(max_tokens=10, temperature=0.0, repeat_penalty=1.0)


@pytest.fixture(scope="module")
def lora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lora(tmp_path_factory.mktemp("lora") / "all.gguf", modules=tuple(LINEAR), strength=0.005)


@pytest.fixture(scope="module")
def ids(engine: LlamaCppEngine) -> tuple[int, ...]:
    return engine.render([Message("user", "How do I boil an egg?")]).token_ids


def last(engine: LlamaCppEngine, ids: tuple[int, ...]) -> np.ndarray:
    return engine.logits(ids, start=len(ids) - 1)[0]


def text(engine: LlamaCppEngine) -> str:
    generation, pieces = engine.generate(engine.render([Message("user", "How do I boil an egg?")]), SAMPLING)
    list(pieces)
    return generation.text


def test_an_adapter_changes_the_model_and_unsetting_gives_the_base_back_bit_for_bit(
    engine: LlamaCppEngine, lora: Path, ids: tuple[int, ...]
) -> None:
    base, said = last(engine, ids), text(engine)
    engine.set_adapters([AdapterSlot(lora)])
    assert np.abs(last(engine, ids) - base).max() > 0.5
    assert text(engine) != said
    engine.set_adapters([])
    assert np.array_equal(last(engine, ids), base)
    assert text(engine) == said


def test_the_scale_counts(engine: LlamaCppEngine, lora: Path, ids: tuple[int, ...]) -> None:
    base = last(engine, ids)
    distances = []
    for scale in (0.0, 0.1, 1.0):
        engine.set_adapters([AdapterSlot(lora, scale)])
        distances.append(float(np.abs(last(engine, ids) - base).mean()))
    assert distances[0] == 0.0
    assert 0 < distances[1] < distances[2]


def test_two_adapters_add_up(engine: LlamaCppEngine, lora: Path, tmp_path: Path, ids: tuple[int, ...]) -> None:
    other = write_lora(tmp_path / "other.gguf", seed=1)
    rows = []
    for slots in ([lora], [other], [lora, other]):
        engine.set_adapters([AdapterSlot(path) for path in slots])
        rows.append(last(engine, ids))
    assert len({row.tobytes() for row in rows}) == 3


def test_the_judge_stays_on_the_base(engine: LlamaCppEngine, lora: Path, ids: tuple[int, ...]) -> None:
    base = last(engine, ids)
    engine.set_adapters([AdapterSlot(lora)])
    assert np.array_equal(engine.next_logits(ids[:10], ids[10:]), base)


def test_batches_have_the_adapter_too(engine: LlamaCppEngine, lora: Path, ids: tuple[int, ...]) -> None:
    base = engine.generate_many([ids], SAMPLING)[0].text
    engine.set_adapters([AdapterSlot(lora)])
    assert engine.generate_many([ids], SAMPLING)[0].text != base


def test_a_reply_in_flight_is_not_disturbed(engine: LlamaCppEngine, lora: Path) -> None:
    said = text(engine)
    prompt = engine.render([Message("user", "How do I boil an egg?")])
    generation, pieces = engine.generate(prompt, SAMPLING)
    next(pieces)
    engine.set_adapters([AdapterSlot(lora)])
    list(pieces)
    assert generation.text == said
    assert text(engine) != said


def test_a_file_that_was_replaced_is_read_again(engine: LlamaCppEngine, tmp_path: Path, ids: tuple[int, ...]) -> None:
    path = write_lora(tmp_path / "lora.gguf", seed=1)
    engine.set_adapters([AdapterSlot(path)])
    before = last(engine, ids)
    path.unlink()
    write_lora(path, seed=2, rank=8)
    engine.set_adapters([AdapterSlot(path)])
    assert not np.array_equal(last(engine, ids), before)


def test_bad_adapters_are_refused_and_what_was_applied_stays(
    engine: LlamaCppEngine, lora: Path, tmp_path: Path, ids: tuple[int, ...], model_path: Path
) -> None:
    engine.set_adapters([AdapterSlot(lora)])
    applied = last(engine, ids)
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(lora.read_bytes()[:-1000])
    header_cut = tmp_path / "header.gguf"
    header_cut.write_bytes(lora.read_bytes()[:500])
    other = tmp_path / "other.txt"
    other.write_text("not an adapter")
    bad = {
        tmp_path / "none.gguf": "Cannot read",
        tmp_path: "not a regular file",
        cut: "cut short",
        header_cut: "cut short",
        other: "not a GGUF file",
        model_path: "not a LoRA adapter",
        write_lora(tmp_path / "qwen.gguf", architecture="qwen2"): "made for a qwen2 model",
        write_lora(tmp_path / "narrow.gguf", narrower=64): "does not fit the model",
        write_lora(tmp_path / "deep.gguf", layers=31): "does not fit the model",
    }
    for path, reason in bad.items():
        with pytest.raises(AdapterError, match=reason):
            engine.set_adapters([AdapterSlot(path)])
    with pytest.raises(AdapterError, match="scale"):
        engine.set_adapters([AdapterSlot(lora, float("nan"))])
    assert np.array_equal(last(engine, ids), applied)
