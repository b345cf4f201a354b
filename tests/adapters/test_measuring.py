"""What the gate measures, on the embedded model."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_local.adapters import guarding
from claw_local.adapters.guarding import Fact, guard_facts, measure_guard
from claw_local.adapters.measuring import Question, measure, shipped_prompts
from claw_local.engine.base import Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.memory.fast import with_hints
from claw_local.settings import ModelSettings
from claw_local.signals.checks import Check

SHORT = Sampling(max_tokens=10, temperature=0.7, seed=5)


@pytest.fixture(scope="module")
def engine(model_path: Path) -> LlamaCppEngine:
    return LlamaCppEngine.open(model_path, ModelSettings(threads=1, context=1024), cache_dir=None)


def question(engine: LlamaCppEngine, text: str, hint: str = "", **more: object) -> Question:
    return Question(
        text=text,
        prompt_ids=engine.render([Message("user", text)]).token_ids,
        hinted_ids=engine.render([Message("user", with_hints(text, [hint]))]).token_ids if hint else None,
        held_out=False,
        **more,  # type: ignore[arg-type]
    )


def test_an_adapter_against_itself_changes_nothing(engine: LlamaCppEngine) -> None:
    asked = [
        question(engine, "What is rain?", "Answer in capital letters."),
        question(engine, "What is snow?", response_ids=tuple(engine.tokenize("Frozen water.")), score=1),
    ]
    told, judged = measure(engine, asked, current=[], candidate=[], checks=[Check("uppercase")], sampling=SHORT)
    assert told.before == told.after
    assert told.before != ""
    assert told.divergence_before is not None
    assert told.divergence_before == told.divergence_after
    assert told.divergence_before > 0.01, "a hint changes how the model answers"
    assert told.score_before == told.score_after == -1.0
    assert (judged.divergence_before, judged.margin) == (None, 0.0)
    assert told.margin is None


def test_without_checks_there_is_no_score(engine: LlamaCppEngine) -> None:
    (probe,) = measure(engine, [question(engine, "Why?")], current=[], candidate=[], checks=[], sampling=SHORT)
    assert (probe.score_before, probe.score_after, probe.divergence_before) == (None, None, None)


def test_the_base_has_no_distance_to_itself_and_forgets_nothing(engine: LlamaCppEngine) -> None:
    guard = measure_guard(engine, current=[], candidate=[], sampling=SHORT)
    assert guard.kl_base == 0.0
    assert guard.known_before == guard.known_after > 0.3, "even the embedded model knows simple facts"
    assert guard.declined_before == guard.declined_after


def test_a_wish_that_moves_every_word_is_further_than_one_that_moves_few(
    engine: LlamaCppEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarding, "guard_facts", lambda: guard_facts()[:3])

    def shift(hint: str) -> float:
        return guarding.told_shift(engine, [], [hint], SHORT)

    assert guarding.told_shift(engine, [], [], SHORT) == pytest.approx(0.0, abs=1e-6)
    assert shift("WRITE EVERYTHING IN CAPITAL LETTERS!") > shift("Please be polite.") > 0.0


def test_prompts_ship_with_the_package() -> None:
    kinds = [shipped_prompts("neutral"), shipped_prompts("safety"), [fact.ask for fact in guard_facts()]]
    assert [len(prompts) for prompts in kinds] == [18, 8, 16]
    together = [prompt for prompts in kinds for prompt in prompts]
    assert len(set(together)) == len(together)


def test_a_fact_is_known_whatever_the_case_or_the_accents() -> None:
    fact = Fact("How do you say good morning in Spanish?", ("buenos", "buen dia"))
    assert fact.known("It is **¡BUEN DÍA!**")
    assert not fact.known("Bonjour.")
