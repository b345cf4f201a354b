"""Hints in the person's own words, and where they hold."""

from __future__ import annotations

import pytest

from claw_local.judge.hints import clear_wish, extract, scope_of


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
