"""The judge's own adapters on the model that also answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from claw_local.engine.base import AdapterSlot
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import AdapterError

from .conftest import LINEAR, write_lora


@pytest.fixture(autouse=True)
def no_judge_adapter(engine: LlamaCppEngine) -> Iterator[None]:
    yield
    engine.set_judge_adapters([])


def judged(engine: LlamaCppEngine) -> np.ndarray:
    return engine.next_logits(engine.tokenize("Message: thanks\nFeeling:"), engine.tokenize(" very"))


def test_a_judges_adapter_changes_the_judge_alone(engine: LlamaCppEngine, tmp_path: Path) -> None:
    lora = write_lora(tmp_path / "judge.gguf", modules=tuple(LINEAR), strength=0.005)
    ids = engine.tokenize("The sky is")
    base, answered = judged(engine), engine.logits(ids, start=0)
    engine.set_judge_adapters([AdapterSlot(lora)])
    changed = judged(engine)
    assert np.abs(changed - base).max() > 0.5
    assert np.array_equal(engine.logits(ids, start=0), answered)
    engine.set_adapters([AdapterSlot(lora, 0.5)])
    assert np.array_equal(judged(engine), changed)
    engine.set_judge_adapters([])
    assert np.array_equal(judged(engine), base)


def test_a_bad_file_is_refused_and_the_judge_stays_as_it_was(engine: LlamaCppEngine, tmp_path: Path) -> None:
    base = judged(engine)
    with pytest.raises(AdapterError, match=r"missing\.gguf"):
        engine.set_judge_adapters([AdapterSlot(tmp_path / "missing.gguf")])
    assert np.array_equal(judged(engine), base)
