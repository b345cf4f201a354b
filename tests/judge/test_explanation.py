"""Why the judge says what it says, part by part, in numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from claw_local.judge import phrases
from claw_local.judge.explanation import Counted, counted, explain, passed
from claw_local.judge.filters import FILTERS
from claw_local.judge.judge import Judge
from claw_local.judge.unheard import UnheardJudge
from claw_local.judge.verdict import Verdict
from claw_local.judge.voting import VotingJudge
from claw_local.judge.written import WRITTEN_FILTERS
from claw_local.signals.attached import Attachment, compose

from .known import Known

WISH = "No lists please, just plain sentences."
FILE = Attachment("rules.md", "That is wrong!\n")


@pytest.fixture(autouse=True)
def _lists_of_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What wordings say was learned, so it is no number to work out by hand: here they say nothing."""
    monkeypatch.setattr(phrases, "evidence", lambda question, reply, message: np.zeros(3))


def alike(text: str) -> dict[str, float]:
    return dict.fromkeys((" positive", " neutral", " negative"), 1.0)


def a_judge(**options: float) -> Judge:
    return Judge(Known(alike), **options)  # type: ignore[arg-type]


def test_the_parts_of_a_judgement_are_told() -> None:
    judge = a_judge(words_weight=0.5)
    told = explain(judge, "How?", "1. So", WISH)
    third = pytest.approx(math.log(1 / 3), abs=1e-4)
    assert told.logprobs == told.prior == {"good": third, "neutral": third, "bad": third}
    assert told.verdict == judge.judge("How?", "1. So", WISH) and told.heard
    assert [(one.name, one.verdict, one.nats) for one in told.counted] == [
        (one.name, one.verdict, one.nats / 2) for one in counted("How?", "1. So", WISH)
    ]
    assert told.counted and told.filters == dict.fromkeys(FILTERS, True)


def test_a_tool_and_an_empty_message_have_no_parts() -> None:
    for text, role in (("exit code: 1", "tool"), (" ", "user"), (compose([FILE]), "user")):
        told = explain(a_judge(), "How?", "So.", text, role)
        assert (told.logprobs, told.prior, told.counted, told.filters, told.heard) == (None, None, [], {}, True)
    assert explain(a_judge(), "Run it.", "make", "exit code: 1", "tool").verdict.score == -1


def test_of_a_judge_that_is_not_heard_the_words_are_told() -> None:
    unheard = UnheardJudge(a_judge())
    told = explain(unheard, "How?", "1. So", compose([WISH, FILE]))
    assert (told.logprobs, told.prior, told.heard) == (None, None, False)
    assert told.counted == counted("How?", "1. So", WISH) and told.filters == dict.fromkeys(FILTERS, True)


def test_of_votes_the_verdict_is_told() -> None:
    voting = VotingJudge(Known(says='{"verdict": "bad", "hint": []}'), votes=1)  # type: ignore[arg-type]
    told = explain(voting, "How?", "1. So", WISH)
    assert (told.verdict.votes, told.logprobs, told.prior, told.counted, told.heard) == ((-1,), None, None, [], True)
    assert told.filters == dict.fromkeys(FILTERS, True)


def test_who_works_with_tools_is_explained_as_they_are_judged() -> None:
    more = "Write that answer at the end of homework/1.txt."
    for judge in (a_judge(), UnheardJudge(a_judge())):
        assert [one.name for one in explain(judge, "Read it.", "So.", more).counted] == ["wish"]
        assert "wish" not in [one.name for one in explain(judge, "Read it.", "So.", more, working=True).counted]


def test_a_refused_hint_names_what_refused_it() -> None:
    own = Verdict(-1, {}, "", "", True, ["secret"], candidate="x")
    assert passed(own) == {name: name != "secret" for name in FILTERS}
    theirs = Verdict(-1, {}, "", "", True, ["other_language"], candidate="x", written=True)
    assert passed(theirs) == {name: name != "other_language" for name in (*FILTERS, *WRITTEN_FILTERS)}
    assert passed(Verdict(0, {}, "", "", False)) == {}


def test_words_are_told_where_they_stand_the_strongest_first() -> None:
    (praise,) = counted("How?", "So.", "Perfect, thank you!")
    assert praise == Counted("praise", "Perfect, thank you", "good", 2.0)
    again = counted("How do I keep bread fresh?", "So.", "How do I keep bread fresh?")
    assert [(one.name, one.words) for one in again if one.name == "repeat"] == [("repeat", "")]
    both = counted("How?", "1. So", "That's wrong. No lists please.")
    assert [one.nats for one in both] == sorted((one.nats for one in both), reverse=True) and len(both) > 1
    assert {one.name for one in both} >= {"complaint", "wish"}
    (wish,) = [one for one in both if one.name == "wish"]
    assert "please" in wish.words.lower(), "the words of a wish stand under another name"
    assert counted("How?", "So.", "Perfect, thank you!", 0.0) == []
    assert counted("How?", "So.", "Perfect, thank you!", 0.25)[0].nats == 0.5


def test_a_wording_is_told_over_the_verdict_it_fits_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrases, "evidence", lambda question, reply, message: np.array([-3.0, -2.0, -1.0]))
    monkeypatch.setattr(phrases.Phrases, "telling", lambda self, message, verdict: [verdict, "fine"])
    found = counted("How?", "So.", "It rains.", 0.5)
    assert found == [Counted("wording", "bad, fine", "bad", 1.0), Counted("wording", "neutral, fine", "neutral", 0.5)]
    assert counted("How?", "So.", "It rains.", working=True) == counted("How?", "So.", "It rains.", 0.0) == []
