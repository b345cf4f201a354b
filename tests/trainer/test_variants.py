"""Easier and harder variants of the person's own tasks, on the embedded model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from claw_local.adapters.lessons import Lesson, lessons_of
from claw_local.engine.base import Generation, Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.paths import Paths
from claw_local.settings import LearningSettings, ModelSettings, Settings
from claw_local.signals import turns
from claw_local.signals.checks import Check
from claw_local.store import Store
from claw_trainer import variants
from claw_trainer.rewards import Rewards
from claw_trainer.rollouts import stored_samples

SMALL = Settings(learning=LearningSettings(rollout_tokens=24))
BRIEF = Rewards([Check("max_words", 12)])


@pytest.fixture(scope="module")
def engine(model_path: Path) -> Iterator[LlamaCppEngine]:
    with LlamaCppEngine.open(model_path, ModelSettings(threads=1, context=1024), cache_dir=None) as opened:
        yield opened


def failed(store: Store, engine: LlamaCppEngine, question: str) -> Lesson:
    chat = store.chats.create()
    _, reply = store.messages.begin_turn(chat.id, question, parent_id=None)
    made = Generation(prompt_ids=engine.render([Message("user", question)]).token_ids, sampling=Sampling())
    made.text, made.response_ids = "A long answer.", engine.tokenize("A long answer.")
    made.logprobs = [-1.0] * len(made.response_ids)
    store.messages.finish(reply, made, state="done", timings={})
    store.signals.add(reply, "judge", -1, hint="Much shorter, please.")
    return next(lesson for lesson in lessons_of(store, engine, turns.pair(store), []) if lesson.turn.reply.id == reply)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is a tyre made of?", "What is a tyre made of?"),
        ('\n\n"What is a tyre made of?"\nAnd more', "What is a tyre made of?"),
        ("Easier request: What is a tyre made of?", "What is a tyre made of?"),
        ("1. **Request:** What is a tyre made of?", "What is a tyre made of?"),
        ("Sure.", None),
        ("", None),
        ("word " * 100, None),
    ],
)
def test_a_variant_is_read_from_what_the_model_wrote(text: str, expected: str | None) -> None:
    assert variants.read(text) == expected


def test_a_variant_is_about_the_task_and_not_the_task_itself() -> None:
    task = "How do I repair a bicycle tyre?"
    assert variants.is_variant(task, "What is a bicycle made of?")
    assert not variants.is_variant(task, "how do I repair a bicycle tyre")
    assert not variants.is_variant(task, "Who wrote this song?")
    assert variants.is_variant("自転車のタイヤはどう直しますか", "自転車とは何ですか")


def test_it_is_kept_only_if_the_success_rate_moves_as_meant() -> None:
    assert variants.moved_as_meant("easier", 0.0, 1 / 3)
    assert not variants.moved_as_meant("easier", 1 / 3, 1 / 3)
    assert variants.moved_as_meant("harder", 2 / 3, 1 / 3)
    assert not variants.moved_as_meant("harder", 1 / 3, 2 / 3)
    assert variants.directions(0.0) == ["easier"]
    assert variants.directions(1.0) == ["harder"]
    assert variants.directions(0.5) == ["easier", "harder"]


def test_none_reaches_the_chats_and_all_that_is_kept_moved(
    home: Paths, engine: LlamaCppEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(home)
    lessons = [failed(store, engine, "How do I repair a bicycle tyre?"), failed(store, engine, "What do bees eat?")]
    before = (home.data / "claw-local.db").stat().st_size, len(turns.pair(store)), store.chats.list()
    rates: list[list[float]] = []
    measured = variants.success

    def noted(*arguments: object) -> list[float]:
        rates.append(measured(*arguments))  # type: ignore[arg-type]
        return rates[-1]

    monkeypatch.setattr(variants, "success", noted)
    varied = variants.adapted(store, engine, lessons, BRIEF, [], [], SMALL)
    assert varied.counts["tasks"] == 2
    written = varied.counts["easier_written"] + varied.counts["harder_written"]
    assert written == len(rates[1]) > 0, "the model can write at least one that passes for a variant"
    assert len(varied.lessons) == varied.counts["easier_kept"] + varied.counts["harder_kept"] <= written
    for lesson in varied.lessons:
        assert lesson.variant and lesson.prompt_ids not in {own.prompt_ids for own in lessons}
        assert lesson.hinted_ids is not None and "shorter" in engine.detokenize(lesson.hinted_ids)
    assert before == ((home.data / "claw-local.db").stat().st_size, len(turns.pair(store)), store.chats.list())


def test_the_reply_to_the_task_is_no_answer_to_its_variant(home: Paths, engine: LlamaCppEngine) -> None:
    own = failed(Store(home), engine, "How do I repair a bicycle tyre?")
    assert len(stored_samples([own])) == 1
    assert stored_samples([replace(own, variant=True)]) == []


def test_where_nothing_can_tell_or_nothing_failed_there_are_none(home: Paths, engine: LlamaCppEngine) -> None:
    store = Store(home)
    own = failed(store, engine, "How do I repair a bicycle tyre?")
    assert variants.adapted(store, engine, [own], Rewards([]), [], [], SMALL) == variants.Varied()
    pleased = replace(own, turn=replace(own.turn, score=1))
    assert variants.adapted(store, engine, [pleased], BRIEF, [], [], SMALL) == variants.Varied()
    off = Settings(learning=LearningSettings(variants=0))
    assert variants.adapted(store, engine, [own], BRIEF, [], [], off) == variants.Varied()
