"""The quiz: fixed, fair to every letter, and scored by what the model finds likeliest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks import quiz
from claw_local.engine.base import AdapterSlot
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.settings import ModelSettings

from .conftest import small_lora


@pytest.fixture(scope="module")
def engine(model_path: Path) -> Iterator[LlamaCppEngine]:
    with LlamaCppEngine.open(model_path, ModelSettings(context=512), cache_dir=None) as engine:
        yield engine


def test_there_are_sixty_questions_with_four_answers_and_a_balanced_key() -> None:
    questions = quiz.questions()
    assert len({question.text for question in questions}) == 60
    assert all(len(set(question.options)) == 4 for question in questions)
    assert Counter(question.right for question in questions) == {0: 15, 1: 15, 2: 15, 3: 15}


def test_the_right_answer_is_not_given_away_by_its_length() -> None:
    longest = [max(range(4), key=lambda n: len(question.options[n])) for question in quiz.questions()]
    share = np.mean([place == question.right for place, question in zip(longest, quiz.questions(), strict=True)])
    assert share < 0.5


def test_an_easy_question_is_answered_whichever_place_the_answer_has(engine: LlamaCppEngine) -> None:
    options = ("Paris", "Berlin", "Madrid", "Rome")
    turned = [(*options[n:], *options[:n]) for n in range(4)]
    asked = [
        quiz.Question("What is the capital of France?", (a, b, c, d), (a, b, c, d).index("Paris"))
        for a, b, c, d in turned
    ]
    result = quiz.take(engine, asked)
    assert result.points == 100.0
    assert np.allclose(result.margins, result.margins[0], atol=0.05)


def test_an_answer_s_score_is_the_log_probability_of_all_its_words(engine: LlamaCppEngine) -> None:
    prompt, reply = engine.tokenize("The capital of France"), engine.tokenize(" is Paris, of course")
    found = quiz.logprobs_of(engine, prompt, [reply[:1], reply])
    logits = engine.logits([*prompt, *reply], start=0).astype(np.float64)
    wanted = 0.0
    for n, token in enumerate(reply):
        at = logits[len(prompt) - 1 + n]
        wanted += at[token] - np.log(np.exp(at - at.max()).sum()) - at.max()
    assert found[1] == pytest.approx(wanted, abs=0.05)
    assert found[0] > found[1]


def test_the_quiz_sees_the_adapter_that_is_applied(engine: LlamaCppEngine, tmp_path: Path) -> None:
    asked = quiz.questions()[:2]
    base = quiz.take(engine, asked)
    engine.set_adapters([AdapterSlot(small_lora(tmp_path / "small.gguf"))])
    assert quiz.take(engine, asked).margins != base.margins
    engine.set_adapters([])
    assert quiz.take(engine, asked).margins == base.margins
