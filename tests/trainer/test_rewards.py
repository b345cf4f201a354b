"""Rewards of fresh answers: checks first, and the judge's second question only where it passed the exam."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claw_local.adapters.lessons import Lesson, lessons_of
from claw_local.engine.base import Generation, Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.judge import exam
from claw_local.judge.unheard import UnheardJudge
from claw_local.judge.voting import VotingJudge
from claw_local.paths import Paths
from claw_local.settings import ModelSettings
from claw_local.signals import turns
from claw_local.signals.checks import Check
from claw_local.store import Store
from claw_local.store.records import ExamRecord
from claw_trainer.judging import judging
from claw_trainer.rewards import MOST_FAILURES, Rewards, judged
from claw_trainer.rollouts import Practice
from tests.engine.servers import Script
from tests.judge.capable import foolish, parts_of, served_judge, wise

WARM = "Be warmer, please."
"""A wish that no check can verify."""


@pytest.fixture(scope="module")
def engine(model_path: Path) -> Iterator[LlamaCppEngine]:
    with LlamaCppEngine.open(model_path, ModelSettings(threads=1, context=1024), cache_dir=None) as opened:
        yield opened


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


def lessons(store: Store, engine: LlamaCppEngine, hint: str) -> list[Lesson]:
    for question in ("What is rain?", "What is snow?"):
        chat = store.chats.create()
        _, reply = store.messages.begin_turn(chat.id, question, parent_id=None)
        made = Generation(engine.render([Message("user", question)]).token_ids, Sampling())
        made.text, made.response_ids, made.logprobs = "Water.", engine.tokenize("Water."), []
        made.logprobs = [-1.0] * len(made.response_ids)
        store.messages.finish(reply, made, state="done", timings={})
        store.signals.add(reply, "thumb", -1, hint=hint)
    return lessons_of(store, engine, turns.pair(store), [])


def asked_about_answers(script: Script) -> list[dict[str, Any]]:
    """Requests that are no case of an exam."""
    known = {(case.hint, case.reply.strip()) for case in exam.follows_cases()}
    found = []
    for path, _, body in script.asked:
        if path.endswith("completions"):
            hint, reply = parts_of(body)
            if (hint, reply) not in known:
                found.append(body)
    return found


def likes_the_first_half(body: dict[str, Any]) -> str:
    """Passes the exam; of other replies it says yes to those with an even number of letters."""
    hint, reply = parts_of(body)
    if (hint, reply) in {(case.hint, case.reply.strip()) for case in exam.follows_cases()}:
        return wise(body)
    return json.dumps({"follows": "yes" if len(reply) % 2 == 0 else "no"})


def test_where_the_judge_passed_its_exam_it_rewards_what_no_check_can(store: Store, engine: LlamaCppEngine) -> None:
    with served_judge(likes_the_first_half) as (server, script, _):
        given = lessons(store, engine, WARM)
        rewards = judged(store, VotingJudge(server, votes=1), given, [], [])
        (record,) = store.exams.list()
        assert record.passed and record.question == "follows"
        practice = Practice(given, rewards, Sampling(max_tokens=8, temperature=0.9), seed=2)
        samples = practice.round(engine, None, 4)
        bodies = asked_about_answers(script)
        assert bodies and all(parts_of(body)[0] == WARM for body in bodies)
        texts = {parts_of(body)[1]: len(parts_of(body)[1]) % 2 == 0 for body in bodies}
        rewarded = [made for made in samples if made.score is not None]
        assert rewarded, "answers without checks have rewards now"
        for made in rewarded:
            text = engine.detokenize([t for t in made.response_ids if engine.detokenize([t])]).strip()
            assert made.score == (1.0 if texts[text] else -1.0)
        assert practice.scores
        judged(store, VotingJudge(server, votes=1), given, [], [])
        assert len(store.exams.list()) == 1, "the exam is taken once"


def graded(store: Store, judge: VotingJudge, auc: float) -> VotingJudge:
    """The judge, its exam in the second question taken."""
    who = judge.identity
    store.exams.put(
        ExamRecord(who.model, who.adapter, who.version, "follows", auc, auc, 0.5, 242, auc >= exam.PASS_AUC, {}, 0.1)
    )
    return judge


def test_where_it_failed_its_word_counts_nothing(store: Store, engine: LlamaCppEngine) -> None:
    with served_judge(wise) as (server, script, _):
        given = lessons(store, engine, WARM)
        rewards = judged(store, graded(store, VotingJudge(server, votes=1), 0.89), given, [], [])
        practice = Practice(given, rewards, Sampling(max_tokens=8, temperature=0.9), seed=2)
        samples = practice.round(engine, None, 4)
        assert samples and all(made.score is None for made in samples)
        assert asked_about_answers(script) == []
        assert practice.scores == []


def test_what_checks_can_verify_is_never_put_to_a_judge_and_needs_no_exam(store: Store, engine: LlamaCppEngine) -> None:
    with served_judge(wise) as (server, script, _):
        given = lessons(store, engine, "No lists, please.")
        rewards = judged(store, VotingJudge(server, votes=1), given, [Check("no_lists")], ["No lists, please."])
        assert store.exams.list() == [] and not [path for path, _, _ in script.asked if "completions" in path]
        assert rewards(given[0], "So it is.") == 1.0
        assert rewards(given[0], "- a\n- b") < 0  # type: ignore[operator]


def test_a_rough_check_makes_way_for_a_judge_that_may_be_asked(store: Store, engine: LlamaCppEngine) -> None:
    lesson = lessons(store, engine, "")[0]
    wish = "Be warm, and no lists."
    checks = [Check("warm"), Check("no_lists")]
    alone = Rewards(checks, [wish])
    assert alone(lesson, "Well done!") == 1.0 and alone(lesson, "It is so.") == -0.75
    asked: list[str] = []

    def follows(hint: str, reply: str) -> bool:
        asked.append(hint)
        return reply == "It is so."

    judged = Rewards(checks, [wish], follows)
    assert judged(lesson, "Well done!") == -0.5 and judged(lesson, "It is so.") == 1.0
    assert asked == [wish, wish]
    assert judged(lesson, "- Well done!") == -1.0, "what is certain needs no judge"
    assert asked == [wish, wish]


def test_checks_come_first_and_a_judge_in_doubt_changes_nothing(store: Store, engine: LlamaCppEngine) -> None:
    lesson = lessons(store, engine, "")[0]
    asked: list[str] = []

    def follows(answer: bool | None) -> Rewards:
        def say(hint: str, reply: str) -> bool | None:
            asked.append(hint)
            return answer

        return Rewards([Check("lowercase")], [WARM, "All lowercase, please."], say)

    assert follows(True)(lesson, "Not lowercase.") == -1.0 and asked == []
    assert follows(True)(lesson, "all small.") == 1.0 and asked == [WARM]
    assert follows(False)(lesson, "all small.") == -0.5
    assert follows(None)(lesson, "all small.") == 1.0
    assert Rewards([], [WARM], lambda *_: None)(lesson, "so") is None
    assert Rewards([], [WARM], lambda *_: False)(lesson, "so") == -1.0
    assert Rewards([], [WARM])(lesson, "so") is None
    assert Rewards([], [WARM], lambda *_: True)(lesson, "  ") is None


def test_a_judge_that_fails_while_it_rewards_is_asked_no_more_and_gives_no_reward(
    store: Store, engine: LlamaCppEngine
) -> None:
    with served_judge(wise) as (server, script, _):
        given = lessons(store, engine, WARM)
        rewards = judged(store, graded(store, VotingJudge(server, votes=1), 0.9), given, [], [])
        script.says = lambda body: "I would rather not."
        assert [rewards(given[0], f"Rain {n}.") for n in range(9)] == [None] * 9
        assert len([path for path, _, _ in script.asked if "completions" in path]) == MOST_FAILURES


def test_a_run_whose_judge_cannot_be_reached_goes_on_without(
    store: Store, engine: LlamaCppEngine, home: Paths, capfd: pytest.CaptureFixture[str]
) -> None:
    with served_judge(wise) as (_, _, settings), judging(settings, home, store, engine) as judge:
        assert isinstance(judge, VotingJudge)
        record = exam.find(store.exams, judge, "next")
        assert record is not None and record.passed, "it takes its first exam there, once"
    with judging(settings, home, store, engine) as judge:
        assert judge is None
    assert "No server answers" in capfd.readouterr().out


def test_a_judge_that_fails_its_first_exam_is_not_heard_in_that_run(
    store: Store, engine: LlamaCppEngine, home: Paths
) -> None:
    with (
        served_judge(foolish) as (_, _, settings),
        judging(settings, home, store, engine) as judge,
    ):
        assert isinstance(judge, UnheardJudge)
        assert judge.judge("How?", "1. So", "No lists please.").score == -1
