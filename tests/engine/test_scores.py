"""Logits of given text, and the judge's next token on the base model."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from claw_local.engine.base import Cancelled, Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import EngineError


def test_row_i_predicts_the_token_after_it(engine: LlamaCppEngine) -> None:
    ids = engine.tokenize("The capital of France is Paris. The capital of France is")
    rows = engine.logits(ids, start=0)
    assert rows.shape == (len(ids), 49152)
    assert engine.detokenize([int(rows[-1].argmax())]) == " Paris"


def test_rows_do_not_depend_on_where_they_start(engine: LlamaCppEngine) -> None:
    ids = engine.tokenize("Rivers run to the sea, and the sea is never full. " * 12)
    assert len(ids) > 130
    every = engine.logits(ids, start=0)
    for start in (1, 64, 127, len(ids) - 1):
        assert np.array_equal(engine.logits(ids, start=start), every[start:])


def test_a_thousand_positions_fit(engine: LlamaCppEngine) -> None:
    ids = engine.tokenize("and so on " * 400)[:1000]
    assert engine.logits(ids, start=900).shape == (100, 49152)


def test_bad_ranges_are_refused(engine: LlamaCppEngine) -> None:
    for ids, start in (([], 0), ([1, 2], 2), ([1, 2], -1)):
        with pytest.raises(EngineError):
            engine.logits(ids, start=start)
    with pytest.raises(EngineError, match="room for"):
        engine.logits([5] * 3000, start=0)
    with pytest.raises(EngineError, match="empty"):
        engine.next_logits([], [])


def test_the_judges_prefix_is_kept_and_changes_nothing(engine: LlamaCppEngine) -> None:
    prefix = engine.tokenize("Question: is the sky blue? Answer: yes. " * 8)
    suffixes = [
        engine.tokenize(text) for text in ("Question: is grass red? Answer:", "Question: is snow white? Answer:")
    ]
    fresh = [engine.logits([*prefix, *suffix], start=len(prefix) + len(suffix) - 1)[0] for suffix in suffixes]
    for suffix, expected in zip([*suffixes, *suffixes], [*fresh, *fresh], strict=True):
        assert np.array_equal(engine.next_logits(prefix, suffix), expected)


def test_the_judge_leaves_the_chat_alone(engine: LlamaCppEngine) -> None:
    prompt = engine.render([Message("user", "How do I boil an egg?")])
    for _ in range(2):
        generation, pieces = engine.generate(prompt, Sampling(max_tokens=4, seed=1))
        list(pieces)
        engine.next_logits(engine.tokenize("Something quite different"), engine.tokenize(" to judge"))
    assert generation.evaluated == 2


def test_a_cancelled_judge_raises_and_can_be_asked_again(engine: LlamaCppEngine) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        engine.next_logits([1, 2, 3], [4, 5], cancel=cancel)
    assert engine.next_logits([1, 2, 3], [4, 5]).shape == (49152,)


def test_a_reply_goes_before_a_judge_that_is_running(engine: LlamaCppEngine) -> None:
    prompt = engine.render([Message("user", "How do I boil an egg?")])
    long = [int(token) for token in np.random.default_rng(0).integers(100, 40000, 700)]
    done = threading.Event()
    results = []

    def judge() -> None:
        results.append(engine.next_logits(long, [7, 8]))
        done.set()

    thread = threading.Thread(target=judge)
    thread.start()
    generation, pieces = engine.generate(prompt, Sampling(max_tokens=2, seed=1))
    list(pieces)
    assert not done.is_set()
    assert generation.first_token_s < 10
    thread.join(120)
    assert np.array_equal(results[0], engine.logits([*long, 7, 8], start=701)[0])
