"""The exams: what they hold, who passes them, and what comes of failing one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local.engine.base import Cancelled
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import JudgeError
from claw_local.judge import exam
from claw_local.judge.examples import scored, shipped
from claw_local.judge.explanation import explain
from claw_local.judge.opening import make_judge
from claw_local.judge.unheard import UnheardJudge
from claw_local.judge.verdict import Identity, Verdict
from claw_local.judge.voting import VotingJudge
from claw_local.paths import Paths
from claw_local.settings import JudgeSettings, ModelSettings
from claw_local.store import Store

from .capable import foolish, served_judge, wise


class Scripted:
    """A judge whose answers to the second question are given; the first it has none to."""

    identity = Identity("m", "", "v")

    def __init__(self, said: list[float]) -> None:
        self._said = iter(said)

    def judge(self, *_: object, **__: object) -> Verdict:
        raise JudgeError("It says nothing.")

    def follows(self, hint: str, reply: str, *, cancel: threading.Event | None = None) -> float:
        return next(self._said)


def test_the_exam_of_the_first_question_is_a_set_of_its_own() -> None:
    cases = exam.next_cases()
    others = {one.next for split in ("train", "dev", "test") for one in shipped(split)}
    others |= {one.next for split in ("train", "dev") for one in scored(split)}
    assert len(cases) == 60
    assert not others & {case.next for case in cases}
    assert {case.lang for case in cases} == {"en", "de", "es", "fr", "zh", "ja"}
    scores = [case.score for case in cases]
    assert min(scores.count(1), scores.count(-1)) >= 20 and scores.count(0) >= 10


def test_a_capable_judge_passes_and_a_foolish_one_fails() -> None:
    with served_judge(wise) as (engine, script, _):
        seen: list[tuple[int, int]] = []
        for question in exam.QUESTIONS:
            record = exam.take(
                VotingJudge(engine, votes=1), question, on_progress=lambda done, of: seen.append((done, of))
            )
            assert record.passed and record.auc == 1.0
            assert seen[-1] == (record.examples, record.examples)
            assert (record.model, record.adapter) == ("openai:wise-70b", "")
        script.says = foolish
        failed = exam.take(VotingJudge(engine, votes=1), "next")
        assert not failed.passed and failed.auc == 0.0


def test_who_only_knows_the_wishes_it_was_trained_on_fails() -> None:
    cases = exam.follows_cases()
    knows_seen = [float(case.follows) if case.seen else 0.5 for case in cases]
    record = exam.take(Scripted(knows_seen), "follows")
    assert record.groups["seen"] == 1.0 and record.groups["unseen"] == 0.5
    assert not record.passed
    knows_all = exam.take(Scripted([float(case.follows) for case in cases]), "follows")
    assert knows_all.passed
    assert {case.wish for case in cases} <= set(knows_all.groups)


def test_a_judge_that_fails_in_the_middle_has_not_taken_the_exam() -> None:
    with pytest.raises(JudgeError):
        exam.take(Scripted([]), "next")
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        exam.take(Scripted([0.5] * 999), "follows", cancel=cancel)


def test_the_threshold_takes_off_a_judges_lean() -> None:
    said, labels = [0.02, 0.05, 0.2, 0.3], [False, False, True, True]
    threshold, accuracy = exam.best_threshold(said, labels)
    assert (threshold, accuracy) == (pytest.approx(0.125), 1.0)
    assert [exam.answer(p, threshold) for p in said] == [False, False, True, True]
    assert exam.answer(0.125, threshold) is None, "in the middle it is not sure"
    assert exam.answer(1.0, 0.5) is True and exam.answer(0.0, 0.5) is False
    assert exam.best_threshold([0.5, 0.5], [True, False]) == (0.5, 0.5)


def test_results_are_kept_once_for_each_judge_and_question(home: Paths) -> None:
    store = Store(home)
    judge = Scripted([float(case.follows) for case in exam.follows_cases()])
    assert exam.find(store.exams, judge, "follows") is None
    kept = store.exams.put(exam.take(judge, "follows"))
    assert exam.find(store.exams, judge, "follows") == kept
    assert exam.find(store.exams, judge, "next") is None
    again = store.exams.put(kept)
    assert store.exams.list() == [again]
    store.close()


@pytest.fixture(scope="module")
def engine(model_path: Path) -> Iterator[LlamaCppEngine]:
    with LlamaCppEngine.open(model_path, ModelSettings(threads=1, context=1024), cache_dir=None) as opened:
        yield opened


def test_the_embedded_judge_passes_the_first_exam_as_it_is_used(engine: LlamaCppEngine, home: Paths) -> None:
    store = Store(home)
    judge = make_judge(engine, JudgeSettings(), store)
    record = store.exams.put(exam.take(judge, "next"))
    assert record.passed, record
    assert make_judge(engine, JudgeSettings(), store).identity == judge.identity
    store.close()


@pytest.mark.parametrize("votes", [0, 3])
def test_a_judge_that_failed_is_not_heard_and_the_words_decide(engine: LlamaCppEngine, home: Paths, votes: int) -> None:
    store, settings = Store(home), JudgeSettings(votes=votes)
    judge = make_judge(engine, settings, store)
    who = judge.identity
    store.exams.put(exam.ExamRecord(who.model, who.adapter, who.version, "next", 0.7, 0.5, 0.5, 60, False, {}, 0.1))
    deaf = make_judge(engine, settings, store)
    assert isinstance(deaf, UnheardJudge)
    assert deaf.identity == judge.identity, "it stays the judge that took the exam"
    wish = deaf.judge("How?", "1. So", "No lists please, just plain sentences.")
    assert (wish.score, wish.hint) == (-1, "No lists please, just plain sentences.")
    assert deaf.judge("How?", "So.", "Perfect, thank you!").score == 1
    assert deaf.judge("How?", "So.", "The bakery opens at nine and she went there with her aunt.").score == 0
    assert deaf.judge("How?", "So.", " ").score == 0
    assert deaf.judge("Run.", "So.", "exit code: 1", next_role="tool").score == -1
    told = explain(deaf, "How?", "1. So", "No lists please, just plain sentences.")
    assert not told.heard and told.logprobs is None and told.counted
    assert not isinstance(make_judge(engine, settings, store, examining=True), UnheardJudge), "it may try again"
    store.close()
