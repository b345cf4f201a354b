"""What an answer takes from its question, and wishes for it."""

from __future__ import annotations

import pytest

from claw_local.signals.about import matter, people_in, sounds_warm
from claw_local.signals.checks import Check, infer_checks, score

QUESTION = "My pupil Mia wrote: The octopus has three hearts and changes its colour to hide. What should I write?"
GOOD = "Well done, Mia! I enjoyed reading how the octopus changes its colour."


def wishes(*hints: str) -> set[str]:
    return {check.kind for check in infer_checks(hints)}


@pytest.mark.parametrize(
    ("question", "people"),
    [
        ("Write a comment on this homework by Jonas: 5 times 12 is 60.", ["Jonas"]),
        ("Please comment on Lena's homework.", ["Lena"]),
        ("Pupil: Anne-Marie. Text: The Romans built roads to Gaul.", ["Anne-Marie"]),
        ("A birthday card for Émile, my neighbour", ["Émile"]),
        ("A birthday song for everybody", []),
        ("Schreib meiner Freundin Käthe eine Nachricht", ["Käthe"]),
        ("Mon collègue s'appelle Luc. Que lui dire ?", ["Luc"]),
        ("Una nota para mi vecina Rosa", ["Rosa"]),
        ("A letter to my boss and to my friend Ida", ["Ida"]),
        ("What is the capital of Australia?", []),
        ("The essay by Monday, please", []),
        ("my friend said no", []),
    ],
)
def test_people_are_found_where_something_says_that_they_are(question: str, people: list[str]) -> None:
    assert people_in(question) == people


def test_forms_of_a_word_are_one_matter_and_words_of_the_request_are_none() -> None:
    assert matter("Bubbles bubbling") == {"bubbl"}
    assert matter("Please write a comment on this poem") == {"poem"}
    assert matter("北京天气") == {"北京", "京天", "天气"}


@pytest.mark.parametrize(
    ("text", "warm"),
    [
        (GOOD, True),
        ("I’m sorry, but I cannot help with that.", False),
        ("Don’t worry, that happens to everybody.", True),
        ("Das hast du toll gemacht.", True),
        ("¡Enhorabuena!", True),
        ("Quelle histoire formidable", True),
        ("写得好，继续努力！", True),
        ("よく書けました。", True),
        ("The answer is 60.", False),
        ("Dear Omar, I hope this message finds you well. Of course I am happy to help.", False),
        ("Great, but stupid.", False),
        ("He greatly erred.", False),
        ("", False),
    ],
)
def test_warmth_is_heard_and_harsh_words_undo_it(text: str, warm: bool) -> None:
    assert sounds_warm(text) is warm


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        ("says_name", "Well done! I enjoyed reading how the octopus changes its colour."),
        ("specific", "Well done, Mia! Keep going like that."),
        ("warm", "Mia tells how the octopus changes its colour."),
    ],
)
def test_what_its_question_asks_for_is_seen_in_an_answer(kind: str, broken: str) -> None:
    check = Check(kind)
    assert check.passes(GOOD, QUESTION)
    assert not check.passes(broken, QUESTION)
    wished = [Check("says_name"), Check("specific"), Check("warm")]
    assert score(GOOD, wished, QUESTION) == 1.0
    assert score(broken, wished, QUESTION) == pytest.approx(-1 + 0.5 * 2 / 3)


def test_a_question_that_names_nobody_tells_nothing_about_a_name() -> None:
    assert Check("says_name").judge("Hello!", "How do I boil an egg?") is None
    assert Check("says_name").passes("Hello!", "How do I boil an egg?")
    assert Check("specific").judge("Hello!", "Why?") is None
    assert score("Hello!", [Check("says_name")], "How do I boil an egg?") is None
    # What can be told counts alone.
    assert score("Boil it.", [Check("says_name"), Check("no_lists")], "How do I boil an egg?") == 1.0
    assert score("- Boil it.", [Check("says_name"), Check("no_lists")], "How do I boil an egg?") == -1.0


def test_a_name_is_no_matter() -> None:
    question = "Comment on Octavia's text: Penguins stand close together and take turns."
    assert not Check("specific").passes("Octavia, that is about penguins.", question)
    assert Check("specific").passes("Octavia, your penguins take turns.", question)


@pytest.mark.parametrize(
    ("hint", "found"),
    [
        ("Please be friendlier.", {"warm"}),
        ("Too cold for a birthday card", {"warm"}),
        ("Don't be so harsh with her", {"warm"}),
        ("a bit of praise would be nice", {"warm"}),
        ("what kind of bird is that?", set()),
        ("Please always use the child's name.", {"says_name"}),
        ("address him by his first name", {"says_name"}),
        ("give me the name of the capital", set()),
        ("That is too generic, be more specific", {"specific"}),
        ("refer to what she wrote", {"specific"}),
        ("Bitte freundlicher, und nenn das Kind beim Namen.", {"warm", "says_name"}),
        ("zu allgemein, geh auf den Text ein", {"specific"}),
        ("más amable, por favor, y usa su nombre", {"warm", "says_name"}),
        ("plus chaleureux, et mentionne son prénom", {"warm", "says_name"}),
        ("太笼统了，语气亲切一点", {"specific", "warm"}),
        ("もっと優しく、名前で呼んで", {"warm", "says_name"}),
        ("Just the facts, no warm words.", set()),
        ("Thanks, that was kind of you.", set()),
    ],
)
def test_wishes_about_tone_and_matter_are_read_from_everyday_words(hint: str, found: set[str]) -> None:
    assert wishes(hint) == found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Be warm, please.", "Not so friendly please, that is gushing."),
        ("Use the pupil's name.", "Leave out the name, please."),
        ("ein bisschen Lob bitte", "weniger Lob"),
    ],
)
def test_a_later_wish_lifts_it(before: str, after: str) -> None:
    assert wishes(before) and not wishes(before, after)
