"""Fresh answers and stored turns as samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_local.adapters.lessons import lasting_hints, lessons_of
from claw_local.engine.base import Generation, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.paths import Paths
from claw_local.settings import ModelSettings
from claw_local.signals import turns
from claw_local.signals.checks import Check, infer_checks
from claw_local.store import Store
from claw_trainer.batches import Sample
from claw_trainer.rollouts import Practice, balanced, stored_samples


@pytest.fixture(scope="module")
def engine(model_path: Path) -> LlamaCppEngine:
    return LlamaCppEngine.open(model_path, ModelSettings(threads=1, context=1024), cache_dir=None)


def sample(score: float | None) -> Sample:
    return Sample(prompt_ids=(1,), response_ids=(2,), score=score, teacher_prompt_ids=(1, 3))


def a_turn(store: Store, engine: LlamaCppEngine, question: str, score: int, hint: str = "") -> int:
    from claw_local.engine.base import Message

    chat = store.chats.create()
    _, reply = store.messages.begin_turn(chat.id, question, parent_id=None)
    made = Generation(prompt_ids=engine.render([Message("user", question)]).token_ids, sampling=Sampling())
    made.text, made.response_ids, made.logprobs = "- One\n- Two", engine.tokenize("- One\n- Two"), []
    made.logprobs = [-1.0] * len(made.response_ids)
    store.messages.finish(reply, made, state="done", timings={})
    store.signals.add(reply, "judge", score, hint=hint)
    return reply


@pytest.mark.parametrize(
    ("scores", "count", "expected"),
    [
        ([1.0] * 12, 6, [1.0] * 2),
        ([-0.5] * 12, 6, [-0.5] * 3),
        ([1.0, -0.5] * 6, 6, [-0.5] * 3 + [1.0] * 3),
        ([1.0] * 5 + [-0.5], 6, [-0.5] + [1.0] * 2),
        ([None, None, None], 6, [None, None]),
        ([], 6, []),
        ([1.0], 1, [1.0]),
    ],
)
def test_hits_and_misses_are_kept_in_balance(
    scores: list[float | None], count: int, expected: list[float | None]
) -> None:
    if count == 1:
        assert balanced([sample(s) for s in scores], count) == [sample(1.0)]
        return
    assert [kept.score for kept in balanced([sample(s) for s in scores], count)] == expected


def test_a_turn_gives_one_sample_with_what_is_known_of_it(home: Paths, engine: LlamaCppEngine) -> None:
    store = Store(home)
    hinted = a_turn(store, engine, "What is rain?", -1, "No lists please.")
    scored = a_turn(store, engine, "What is snow?", 1)
    wished = a_turn(store, engine, "What is hail?", 0, "No lists please.")
    a_turn(store, engine, "What is wind?", 0)
    lessons = lessons_of(store, engine, [turn for turn in turns.pair(store) if turn.is_lesson], [])
    by_id = {made.message_id: made for made in stored_samples(lessons)}
    assert set(by_id) == {hinted, scored, wished}
    assert (by_id[hinted].score, by_id[scored].score, by_id[wished].score) == (-1.0, 1.0, None)
    assert by_id[scored].teacher_prompt_ids is None
    teacher = by_id[hinted].teacher_prompt_ids
    assert teacher is not None
    assert "No lists please." in engine.detokenize(teacher)
    assert "No lists" not in engine.detokenize(by_id[hinted].prompt_ids), "what is trained has no hint in its prompt"


def test_fresh_answers_are_scored_by_the_checks_and_taught_with_the_hints(home: Paths, engine: LlamaCppEngine) -> None:
    store = Store(home)
    a_turn(store, engine, "What is rain?", -1, "Please don't use lists.")
    store.hints.add("Please don't use lists.")
    hints = [hint.text for hint in lasting_hints(store, engine, 100)]
    checks = infer_checks(hints)
    assert [check.kind for check in checks] == ["no_lists"]
    lessons = lessons_of(store, engine, turns.pair(store), hints)
    practice = Practice(lessons, checks, Sampling(max_tokens=12, temperature=0.7), seed=1)
    samples = practice.round(engine, None, 4)
    assert samples
    for made in samples:
        assert made.score in (1.0, -1.0)
        assert made.prompt_ids == lessons[0].prompt_ids
        assert made.teacher_prompt_ids == lessons[0].hinted_ids
        assert made.behaviour_logprobs is not None
        assert len(made.behaviour_logprobs) == len(made.response_ids) <= 12
    assert len(practice.scores) == 1
    assert Practice([], checks, Sampling(), seed=1).round(engine, None, 4) == []


def test_a_wish_that_is_seldom_met_is_shown_by_answers_drawn_under_the_hint(
    home: Paths, engine: LlamaCppEngine
) -> None:
    store = Store(home)
    for question in ("Tell me all about rain.", "Describe the ocean in detail."):
        a_turn(store, engine, question, -1, "Please answer in at most one short sentence.")
    lessons = lessons_of(store, engine, turns.pair(store), [])
    practice = Practice(lessons, [Check("max_words", 20)], Sampling(max_tokens=40, temperature=0.7), seed=1)
    samples = practice.round(engine, None, 6)
    assert practice.scores == [-1.0], "by itself the model never says so little"
    shown = [made for made in samples if made.score == 1.0]
    assert shown, "told so, it does"
    for made in shown:
        assert len(engine.detokenize(made.response_ids).split()) <= 20
        assert made.behaviour_logprobs is None, "no policy wrote it after the prompt without the hint"
        assert made.prompt_ids in [lesson.prompt_ids for lesson in lessons]
    assert len(shown) <= 2, "no more than a third"


def test_a_long_chat_loses_its_oldest_turns_in_training(home: Paths, engine: LlamaCppEngine) -> None:
    store = Store(home)
    chat = store.chats.create()
    head = None
    for n in range(8):
        head = store.messages.add(chat.id, "user", f"Number {n} " + "wind " * 150, parent_id=head)
        head = store.messages.add(chat.id, "assistant", "Noted.", parent_id=head)
    _, reply = store.messages.begin_turn(chat.id, "The last question", parent_id=head)
    made = Generation(prompt_ids=(1,), sampling=Sampling())
    made.text, made.response_ids, made.logprobs = "yes", [5], [-1.0]
    store.messages.finish(reply, made, state="done", timings={})
    store.signals.add(reply, "thumb", -1)
    (lesson,) = lessons_of(store, engine, turns.pair(store), [])
    text = engine.detokenize(lesson.prompt_ids)
    assert len(lesson.prompt_ids) <= 768
    assert "The last question" in text and "Number 7" in text and "Number 0" not in text
