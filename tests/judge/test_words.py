"""What the words of a message say by themselves, in numbers. No model."""

from __future__ import annotations

import pytest

from claw_local.judge import words

QUESTION = "How do I boil an egg?"
REPLY = "Boil it for eight minutes in hot water."


@pytest.mark.parametrize(
    ("message", "spoken"),
    [
        ("Great, but shorter please.", {"praise": 0.5, "wish": 1.0}),
        ("Shorter please, great work!", {"praise": 1.0}),
        ("Perfect, that's wrong.", {"praise": 1.0, "complaint": 1.0}),
        ("That's wrong. Perfect otherwise, thanks.", {"praise": 1.0}),
        ("Thanks, thanks. But it’s wrong", {"praise": 0.5, "complaint": 1.0}),
        ("That's great", {"praise": 1.0}),
        ("That's not great", {"complaint": 1.0}),
        (QUESTION, {"repeat": 1.0}),
        ("ok", {"acknowledgement": 1.0}),
        ("Who painted the Mona Lisa?", {"new_subject": 1.0}),
        ("Can you tell me more about Rome?", {"new_subject": 1.0}),
        ("And with salt?", {"follow_up": 1.0}),
        ("Why hot water?", {}),  # It asks about the reply.
        ("Could you boil more eggs?", {}),
        ("Who?", {}),  # Too short to be about something else.
        ("The bakery opens at nine.", {}),
        ("Write a short poem about rain.", {"own_task": 1.0}),
        ("No, please write a short poem about rain.", {"wish": 1.0, "correction": 1.0}),
        ("I meant a duck egg.", {"correction": 1.0}),
        ("Use plain sentences, please.", {"wish": 1.0}),
        ("Please add the time it takes", {"wish": 1.0}),
    ],
)
def test_how_strongly_each_group_speaks(message: str, spoken: dict[str, float]) -> None:
    found = words.features(QUESTION, REPLY, message)
    assert set(found) == set(words.data()["weights"])
    assert {name: strength for name, strength in found.items() if strength} == spoken
    assert all(type(strength) is float for strength in found.values())
    against = {"complaint", "correction", "wish", "repeat"} & set(spoken)
    assert words.speaks_against(QUESTION, REPLY, message) == bool(against)


@pytest.mark.parametrize(
    "message",
    [
        "Name three fruits.",
        "Say hello in a friendly way",
        "Now explain how photosynthesis works in detail.",
        "Translate good morning into Spanish.",
        "Nenne drei Obstsorten.",
        "Erkläre mir, wie ein Motor funktioniert.",
        "Dime un chiste.",
        "Donne-moi une recette de crêpes.",
    ],
)
def test_a_task_of_its_own_says_nothing_of_the_reply(message: str) -> None:
    assert words.features(QUESTION, REPLY, message)["own_task"] == 1.0
    assert not words.speaks_against(QUESTION, REPLY, message)
    assert words.evidence(QUESTION, REPLY, message).tolist() == [0.0, 5.0, 0.0]


@pytest.mark.parametrize(
    "message",
    [
        "Name the year.",  # Of what was answered.
        "Explain it in detail.",
        "Explain in Korean please",
        "List of 5 with price and distance please",
        "Name one. A model. I don't want to study certificates",
        "Write bullet points.",
        "Tell me how long to boil eggs.",  # What the question was about.
        "Give me another one.",
        "No, name three fruits.",
        "Name fruits? That's wrong.",
        "Write a story " + "and another story " * 12,
    ],
)
def test_what_may_be_about_the_reply_is_no_task_of_its_own(message: str) -> None:
    assert words.features(QUESTION, REPLY, message)["own_task"] == 0.0


def test_evidence_is_the_weights_of_what_is_said() -> None:
    # Praise before "but": half of 2 nats for good; a wish: 1.5 for bad.
    assert words.evidence(QUESTION, REPLY, "Great, but shorter please.").tolist() == [1.0, 0.0, 1.5]
    assert words.evidence(QUESTION, REPLY, "ok").tolist() == [0.0, 2.5, 0.0]
    assert words.evidence(QUESTION, REPLY, "The bakery opens at nine.").tolist() == [0.0, 0.0, 0.0]


def test_praise_that_is_turned_round_is_none() -> None:
    assert [found.group() for found in words.find_praise("not great, but very helpful")] == ["very helpful"]
    assert words.tidy(" It’s\n so ") == "It's so"


def test_a_message_of_nearly_the_same_words_is_the_question_again() -> None:
    # Three words of four in common: 0.75. Of five: 0.6.
    assert words.features("alpha bravo charlie", "", "alpha bravo charlie delta")["repeat"] == 1.0
    assert words.features("alpha bravo charlie delta", "", "alpha bravo charlie echo")["repeat"] == 0.0


def test_words_in_common() -> None:
    assert words._overlap("Boil an EGG now", "boil eggs egg") == 0.5  # boil, egg of boil, egg, now, eggs
    assert words._overlap("one two three four", "one two three five") == 0.6
    assert words._overlap("", "egg") == words._overlap("egg", "") == words._overlap("the and", "egg") == 0.0


def test_the_same_task_put_another_way_is_a_quarter_alike() -> None:
    task = "Write a poem about rain."
    assert not words.is_new_task(task, "Write a short poem about rain.")
    assert words.is_new_task(task, "Write a story about dragons.") and words.is_new_task("Why?", task)
    assert not words.is_new_task(task, "Why does it rain?")


def test_who_works_with_tools_and_names_a_file_asks_for_more_work() -> None:
    def wish(message: str, *, working: bool) -> float:
        return words.features(QUESTION, REPLY, message, working=working)["wish"]

    assert wish("Please write it as a list.", working=True) == 1.0
    assert wish("Please write it as a list into notes.txt.", working=True) == 0.0
    assert wish("Please write it into my notes.", working=True) == 0.0
    assert wish("Please write it into my notes.", working=False) == 1.0
    assert words.speaks_against(QUESTION, REPLY, "Please write it into my notes.")
    assert not words.speaks_against(QUESTION, REPLY, "Please write it into my notes.", working=True)
