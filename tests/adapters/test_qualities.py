"""What is seen in answers: repetition, sameness, refusals."""

from __future__ import annotations

import pytest

from claw_local.adapters.qualities import Qualities, echo, foreign, is_refusal, qualities, repetition, sameness


def test_repetition_counts_phrases_that_stood_before() -> None:
    assert repetition("one two three four five six seven eight nine ten") == 0.0
    assert repetition("a b c d a b c d") == pytest.approx(1 / 5)  # abcd bcda cdab dabc abcd: one of five again
    assert repetition("") == 0.0


def test_sameness_is_what_answers_to_different_questions_share() -> None:
    assert sameness(["a b c d", "a b c e"]) == pytest.approx(1 / 3)  # abc, bcd, bce: one of three in both
    assert sameness(["No.", "no"]) == 1.0
    assert sameness(["a b c d", "w x y z"]) == 0.0
    assert sameness(["only one"]) == sameness([]) == sameness(["", ""]) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that.",
        "I cannot help with this request.",
        "As an AI language model, I do not have opinions.",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "Lo siento, no puedo ayudar con eso.",
        "Je suis désolé, mais je ne peux pas.",
        "抱歉，我无法回答这个问题。",
        "申し訳ありませんが、お答えできません。",
    ],
)
def test_a_refusal_is_seen_in_its_first_words(text: str) -> None:
    assert is_refusal(text)
    assert not is_refusal("Walk every day, sleep enough and drink water. " * 5 + text)


@pytest.mark.parametrize(
    "text",
    ["You can't go wrong with a warm bath.", "Boil the egg for eight minutes.", "Sorry seems to be a hard word.", ""],
)
def test_an_answer_is_no_refusal(text: str) -> None:
    assert not is_refusal(text)


def test_qualities_are_means_over_the_answers() -> None:
    seen = qualities(["one two three", "", "I cannot do this for you."])
    assert seen == Qualities(words=3.0, repetition=0.0, sameness=0.0, refusals=pytest.approx(1 / 3), empty=1)
    assert qualities([]) == Qualities()


def test_an_echo_is_the_share_of_an_answer_that_stands_in_its_question() -> None:
    question = "How do I keep my kitchen clean?"
    assert echo(question, question) == 1.0
    assert echo(question, "Wipe the counter every evening with warm water.") == 0.0
    assert echo(question, "Yes.") == 0.0
    assert echo(question, "You asked: how do I keep my kitchen clean?") == pytest.approx(5 / 7)


def test_foreign_is_what_is_answered_in_another_language_where_both_can_be_told() -> None:
    english, spanish = (
        "This is the way to do it with the tools that you have.",
        "Esto es lo que se puede hacer con la casa.",
    )
    assert foreign([(english, english), (english, spanish)]) == 0.5
    assert foreign([("Why?", spanish), (english, "Hm.")]) == 0.0
    assert qualities([spanish, english], [english, english]).foreign == 0.5
    assert qualities([spanish, english]).foreign == 0.0, "no questions, nothing to hold it against"
