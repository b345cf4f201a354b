"""Hints in the person's own words, and where they hold."""

from __future__ import annotations

import pytest

from claw_local.judge.hints import clear_wish, extract, is_about_content, is_directive, scope_of


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("No lists please, tell me in normal sentences.", "No lists please, tell me in normal sentences."),
        ("Thanks, but next time leave out the physics jargon.", "next time leave out the physics jargon."),
        (
            "Hi! Thanks a lot. Please keep answers to two sentences. Have a nice day!",
            "Please keep answers to two sentences.",
        ),
        ("no lists please, thanks", "no lists please"),
        ("Perfect, thank you. From now on no headings.", "From now on no headings."),
        ("That's not what I asked for. Use metric units.", "Use metric units."),
        ("No, I meant the day after tomorrow.", "I meant the day after tomorrow."),
        ("No, Canberra.", "No, Canberra."),
        ("不对，是两万多公里。", "不对，是两万多公里。"),
        ("谢谢！请不要用列表。", "请不要用列表。"),
        ("Danke! Bitte ohne Aufzählung.", "Bitte ohne Aufzählung."),
        ("箇条書きはやめてください。", "箇条書きはやめてください。"),
        ("Shorter please, thanks!", "Shorter please"),
        ("请不要用列表，谢谢！", "请不要用列表"),
        ("短くしてください、ありがとう", "短くしてください"),
        ("Please use no lists, thanks a lot", "Please use no lists"),
        ("Please use no lists, thanks so much for this", "Please use no lists, thanks so much for this"),
        ("Use no lists please thanks", "Use no lists please thanks"),
        ("You are great, use fewer lists please.", "use fewer lists please."),
        ("That was really very good, use fewer lists please.", "That was really very good, use fewer lists please."),
        ("Could you use no lists?", "Could you use no lists?"),
        ("How long is a list?", ""),
        ("Well, it rained", ""),
        ("、请短一点、", "请短一点"),
        ("Great, thanks!", ""),
        ("Perfect, thanks!", ""),
        ("wrong", ""),
        ("That's wrong.", ""),
        ("It doesn't work.", ""),
        ("", ""),
    ],
)
def test_the_directive_sentences_are_the_hint(message: str, hint: str) -> None:
    assert extract(message) == hint


def test_no_more_than_three_sentences_are_kept() -> None:
    message = "Use no lists. Use no bold. Use no headings. Use short words. Use few words."
    assert extract(message) == "Use no lists. Use no bold. Use no headings."


@pytest.mark.parametrize(
    "hint",
    [
        "please no bullet points, just plain sentences",
        "too long, two sentences are enough",
        "Make it less formal",
        "I asked you not to use bold",
        "Use celsius please",
        "不要用列表，请用一段话回答。",
        "Bitte kürzer.",
        "Sin listas, por favor.",
        "Plus court, s'il te plaît.",
        "もっと短くしてください。",
    ],
)
def test_a_wish_about_form_holds_everywhere(hint: str) -> None:
    assert scope_of(hint) == "everywhere"


@pytest.mark.parametrize(
    "hint",
    [
        "I meant the day after tomorrow.",
        "it's Canberra",
        "That's Spanish!",
        "That sorts the list, it doesn't reverse it.",
        "Let the function return a list instead.",
        "mention the decline in Europe",
        "不对，是两万多公里。",
    ],
)
def test_a_correction_of_content_holds_for_its_turn(hint: str) -> None:
    assert scope_of(hint) == "turn"


def test_praise_brings_a_hint_only_with_a_clear_wish_about_form() -> None:
    assert clear_wish("great, but shorter next time") == "shorter next time"
    assert clear_wish("Good. Save it to the file.") == ""
    assert clear_wish("Great! Now write one for my boss too.") == ""
    assert clear_wish("Perfect, thanks!") == ""


def test_a_sentence_that_goes_on_with_a_wish_belongs_to_the_hint() -> None:
    message = "Two sentences are not enough any more. Give me four at least."
    assert extract(message) == message
    assert extract("Give me four at least.") == "", "by itself it says nothing about the answer"


@pytest.mark.parametrize(
    ("hint", "content"),
    [
        ("No, I meant Canberra.", True),
        ("it is Canberra, not Sydney", True),
        ("Es ist Canberra, nicht Sydney", True),
        ("No, it's in French Guiana", True),
        ("not French but Dutch", True),
        ("no es Madrid", True),
        ("Answer in plain sentences.", False),
        ("Shorter, please.", False),
        ("no lists", False),
        ("No emojis", False),
        ("no, no lists", False),
        ("not so long", False),
        ("plain text", False),
        ("in French", False),
        ("at most two sentences", False),
        ("nicht so lang", False),
        ("keine Listen", False),
        ("no uses listas", False),
        ("non pas de listes", False),
        ("リストなし", False),
        ("不要列表", False),
    ],
)
def test_a_hint_about_one_answers_content_is_told_from_one_about_manner(hint: str, content: bool) -> None:
    assert is_about_content(hint) is content


@pytest.mark.parametrize(
    ("sentence", "directs"),
    [
        ("Too long for me.", True),  # A complaint about form, no request.
        ("I don't understand.", False),
        ("The weather is fine today.", False),
        ("When does it open?", False),
        ("Can you make it shorter?", True),
    ],
)
def test_what_directs(sentence: str, directs: bool) -> None:
    assert is_directive(sentence) is directs
