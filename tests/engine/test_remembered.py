"""What an engine knew of its last chats is known to the next one of the same model."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_local.engine.base import AdapterSlot, Generation, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.settings import ModelSettings
from tests.engine.conftest import write_lora

SAMPLING = Sampling(max_tokens=6, temperature=0.8, seed=3)


def said(engine: LlamaCppEngine, prompt: list[int]) -> Generation:
    from claw_local.engine.base import Prompt

    generation, pieces = engine.generate(Prompt(tuple(prompt)), SAMPLING)
    for _ in pieces:
        pass
    return generation


@pytest.mark.parametrize("together", [1, 2])
def test_a_chat_goes_on_under_its_adapter(model_path: Path, tmp_path: Path, together: int) -> None:
    settings = ModelSettings(context=512, threads=1, together=together)
    lora, other = write_lora(tmp_path / "one.gguf"), write_lora(tmp_path / "two.gguf", seed=1)

    def open_() -> LlamaCppEngine:
        return LlamaCppEngine.open(model_path, settings, cache_dir=None)

    with open_() as engine:
        begin = engine.tokenize("The rain in the mountains lasts for days, and whoever walks there should know that it")
        engine.set_adapters([AdapterSlot(other)])  # So that addresses come in another order.
        said(engine, begin[:4])
        engine.set_adapters([AdapterSlot(lora, 0.5)])
        first = said(engine, begin)
        then = [*first.prompt_ids, *first.response_ids, *begin[:3]]
        remembered = engine.remember()
        expected = said(engine, then)
    lengths = [len(one.tokens) for one in remembered.prefixes]
    assert remembered.adapters == (AdapterSlot(lora, 0.5),) and max(lengths) >= len(begin)
    with open_() as engine:
        engine.recall(remembered)
        found = said(engine, then)
    assert found.evaluated == expected.evaluated < 10
    assert (found.response_ids, found.logprobs) == (expected.response_ids, expected.logprobs)

    lora.unlink()
    with open_() as engine:
        engine.recall(remembered)
        assert said(engine, then).evaluated == len(then), "an adapter that is gone is left out"


def test_a_closed_engine_and_one_that_said_nothing_remember_nothing(model_path: Path) -> None:
    engine = LlamaCppEngine.open(model_path, ModelSettings(context=512, threads=1), cache_dir=None)
    assert engine.remember().prefixes == ()
    engine.close()
    assert engine.remember().prefixes == () and not engine.on_gpu
