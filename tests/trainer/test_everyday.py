"""Everyday questions to practise on: in the person's language, with the wishes that hold everywhere, not the gate's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local.adapters.lessons import Lesson, lessons_of
from claw_local.adapters.measuring import shipped_prompts
from claw_local.engine.base import Generation, Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.paths import Paths
from claw_local.settings import ModelSettings
from claw_local.signals import turns
from claw_local.store import Store
from claw_trainer.everyday import everyday, shipped

HINTS = ["No lists, please."]


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home.make())
    yield opened
    opened.close()


@pytest.fixture
def engine(tiny_models: dict[str, Path]) -> Iterator[LlamaCppEngine]:
    engine = LlamaCppEngine.open(tiny_models["llama"], ModelSettings(context=512, threads=1), cache_dir=None)
    yield engine
    engine.close()


def lessons(store: Store, engine: LlamaCppEngine, question: str) -> list[Lesson]:
    _, reply = store.messages.begin_turn(store.chats.create().id, question, parent_id=None)
    made = Generation(engine.render([Message("user", question)]).token_ids, Sampling())
    made.text, made.response_ids, made.logprobs = "- one", [1, 2, 3], [-1.0] * 3
    store.messages.finish(reply, made, state="done", timings={})
    store.signals.add(reply, "thumb", -1, hint=HINTS[0])
    return lessons_of(store, engine, turns.pair(store), HINTS)


def test_they_are_in_the_persons_language_with_the_wishes_for_the_teacher_alone(
    store: Store, engine: LlamaCppEngine
) -> None:
    mine = lessons(store, engine, "Wie kann ich besser schlafen, wenn ich viel arbeite?")
    found = everyday(store, engine, mine, HINTS, count=5, seed=1)
    assert [lesson.turn.question for lesson in found] == [
        lesson.turn.question for lesson in everyday(store, engine, mine, HINTS, count=5, seed=1)
    ]
    assert len({lesson.turn.question for lesson in found}) == 5
    for lesson in found:
        assert lesson.turn.question in shipped()["de"]
        assert lesson.variant and not lesson.turn.hint and lesson.hinted_ids is not None
        said = engine.detokenize(lesson.hinted_ids)
        assert HINTS[0].rstrip(".") in said and lesson.turn.question in said
        assert HINTS[0].rstrip(".") not in engine.detokenize(lesson.prompt_ids)


def test_without_a_wish_that_holds_everywhere_there_are_none(store: Store, engine: LlamaCppEngine) -> None:
    mine = lessons(store, engine, "How can I sleep better?")
    assert everyday(store, engine, mine, [], count=5, seed=1) == []
    assert everyday(store, engine, [], HINTS, count=5, seed=1) == []
    assert everyday(store, engine, mine, HINTS, count=0, seed=1) == []


def test_none_of_them_is_asked_by_the_gate_or_twice() -> None:
    everything = [question for questions in shipped().values() for question in questions]
    assert len(set(everything)) == len(everything)
    assert not set(everything) & set(shipped_prompts("neutral")) and all(everything)
    assert set(shipped()) == {"en", "de", "es", "fr", "zh", "ja"}
