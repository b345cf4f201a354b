"""Scoring a text after another that begins alike: the same numbers, with less work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.settings import ModelSettings


@pytest.fixture(scope="module")
def engine(model_path: Path) -> Iterator[LlamaCppEngine]:
    with LlamaCppEngine.open(model_path, ModelSettings(threads=1, context=512), cache_dir=None) as opened:
        yield opened


def test_what_was_scored_before_changes_no_bit(engine: LlamaCppEngine) -> None:
    begin = engine.tokenize("The weather in the mountains changes quickly, so a hiker takes")
    first, second = (
        [*begin, *engine.tokenize(" a warm coat.")],
        [*begin, *engine.tokenize(" nothing at all but water.")],
    )
    other = engine.tokenize("Quite another text, with nothing in common.")
    alone = {}
    for name, text in (("first", first), ("second", second)):
        engine.logits(other, start=0)
        alone[name] = engine.logits(text, start=len(begin) - 1)
    for start in (len(begin) - 1, len(begin) - 4, 1, 0):
        whole = engine.logits(second, start=start)
        assert np.array_equal(whole[len(begin) - 1 - start :], alone["second"]), start
        assert np.array_equal(engine.logits(first, start=len(begin) - 1), alone["first"])
    assert np.array_equal(engine.logits(first, start=len(begin) - 1), alone["first"]), "the very same again"
    assert np.array_equal(engine.logits(first[:-2], start=len(begin) - 1), alone["first"][:-2]), "a shorter one"


def test_only_what_is_new_is_computed(engine: LlamaCppEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    from claw_local.engine._native import NativeContext

    computed: list[int] = []
    decode = NativeContext.decode

    def counted(self: NativeContext, tokens: list[int], *rest: object) -> None:
        computed.append(len(tokens))
        decode(self, tokens, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(NativeContext, "decode", counted)
    begin = engine.tokenize("The weather in the mountains changes quickly, so a hiker takes")
    texts = [[*begin, *engine.tokenize(end)] for end in (" a coat.", " some water.")]
    engine.logits(texts[0], start=len(begin) - 1)
    computed.clear()
    engine.logits(texts[1], start=len(begin) - 1)
    assert sum(computed) <= len(texts[1]) - len(begin) + 2
