"""What a wording says by itself: the shipped linear model, in numbers. No model of language."""

from __future__ import annotations

import numpy as np
import pytest

from claw_local.judge import phrases, said, words
from claw_local.judge.calibration import SCORES, VERDICTS
from claw_local.judge.evaluation import auc_of
from claw_local.judge.examples import Example, scored, shipped

QUESTION = "How do I boil an egg?"
REPLY = "Boil it for eight minutes in hot water."


def measured(examples: list[Example]) -> tuple[float, float]:
    """Accuracy, and how often a good one ranks above a bad one."""
    people = [one for one in examples if one.next_role == "user"]
    nats = [phrases.evidence(one.question, one.reply, one.next) for one in people]
    right = [SCORES[VERDICTS[int(some.argmax())]] == one.score for some, one in zip(nats, people, strict=True)]
    odds = {
        score: [float(some[0] - some[2]) for some, one in zip(nats, people, strict=True) if one.score == score]
        for score in (1, -1)
    }
    return float(np.mean(right)), auc_of(odds[1], odds[-1]) or 0.0


def test_it_reads_messages_that_it_was_not_taught() -> None:
    accuracy, auc = measured(scored("dev"))
    assert accuracy >= 0.7 and auc >= 0.88
    accuracy, auc = measured(shipped("dev"))  # Written to be hard.
    assert accuracy >= 0.62 and auc >= 0.82


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        ("worked a treat, cheers", "good"),
        ("that's not what I asked for", "bad"),
        ("still doesn't work", "bad"),
        ("hat super geklappt", "good"),
        ("不对，我说的是后天", "bad"),
    ],
)
def test_plain_messages(message: str, verdict: str) -> None:
    assert VERDICTS[int(phrases.evidence(QUESTION, REPLY, message).argmax())] == verdict


def test_they_are_log_probabilities() -> None:
    assert np.exp(phrases.evidence(QUESTION, REPLY, "thanks!")).sum() == pytest.approx(1.0)


def test_question_and_reply_count() -> None:
    alone, again = (phrases.evidence(question, "", "boil an egg how long?") for question in ("", QUESTION))
    assert not np.allclose(alone, again)


def test_a_long_message_is_read_at_its_beginning_only() -> None:
    message = "that's wrong. " + "x" * phrases.MOST_CHARACTERS
    cut = phrases.evidence(QUESTION, REPLY, message[: phrases.MOST_CHARACTERS])
    assert phrases.evidence(QUESTION, REPLY, message + "great, thanks! " * 100_000).tolist() == cut.tolist()
    assert len(phrases.features(QUESTION, REPLY, message * 1000)) < 10 * phrases.MOST_CHARACTERS


def test_where_nothing_is_known_nothing_is_said() -> None:
    keys = phrases.features(QUESTION, REPLY, "fine")
    some = phrases.Phrases(keys[:0], np.zeros((0, 3), dtype=np.int8), 0.1, np.array([1.0, 0.0, 0.0]))
    assert some.evidence(QUESTION, REPLY, "fine").tolist() == [0.0, 0.0, 0.0]
    assert some.telling("fine", "good") == []
    assert phrases.evidence(QUESTION, REPLY, " \n").tolist() == [0.0, 0.0, 0.0]


def test_each_known_feature_counts_once_however_often_it_stands_there() -> None:
    keys = phrases.features(QUESTION, REPLY, "no")
    weights = np.tile(np.array([0, 0, 10], dtype=np.int8), (len(keys), 1))
    some = phrases.Phrases(keys, weights, 0.1, np.zeros(3))
    expected = len(keys) * 10 * 0.1 / np.sqrt(len(keys))
    nats = some.evidence(QUESTION, REPLY, "no")
    assert nats[2] - nats[0] == pytest.approx(expected) and nats[0] == nats[1]


def test_the_most_telling_words_stand_in_the_message() -> None:
    message = "That's just wrong, sorry."
    told = phrases.shipped().telling(message, "bad")
    assert told and all(text in "that's just wrong , sorry ." for text in told) and len(told) <= 3


def test_odd_text_is_read() -> None:
    for message in ("", " ", "\ud800", "👩‍👩‍👧", "\x00\x1b[2J"):
        assert np.isfinite(phrases.evidence(message, message, message)).all()


def test_words_and_wording_add_up_and_only_words_count_for_who_works_with_tools() -> None:
    message = "too long, shorter please"
    of_words, of_phrases = words.evidence(QUESTION, REPLY, message), phrases.evidence(QUESTION, REPLY, message)
    assert said.evidence(QUESTION, REPLY, message) == pytest.approx(of_words + of_phrases)
    working = said.evidence(QUESTION, REPLY, message, working=True)
    assert working.tolist() == words.evidence(QUESTION, REPLY, message, working=True).tolist()
