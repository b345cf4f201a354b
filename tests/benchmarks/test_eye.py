"""What the scripted person sees: each check on texts that keep and that break it."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.personas import eye
from benchmarks.personas.eye import Check, Prompt

PUPIL = Prompt("…", {"name": "Mia", "work": "The sun heats the sea and the water goes up as steam."})

KEPT_AND_BROKEN: list[tuple[str, dict[str, Any], str, str]] = [
    ("no_lists", {}, "Take 2 - 3 eggs, and wait 5 minutes. 1. FC Köln won.", "Take:\n- eggs"),
    ("no_lists", {}, "In 1999. Then later.", "Take:\n 1. eggs"),
    ("no_lists", {}, "One step follows the other.", "Step 1: Boil water."),
    ("no_lists", {}, "It costs 1.50 euros.", "Needed: 1. milk 2. eggs"),
    ("lists", {}, "Take:\n* eggs\n* milk", "Take:\n* eggs"),
    ("lists", {"entries": 3}, "1) a b\n2) c d\n3) e f", "1) a b\n2) c d"),
    ("no_bold", {}, "2**3 is 8.", "A **bold** word"),
    ("no_bold", {}, "my_name__is", "An **unclosed one"),
    ("bold", {}, "<b>yes</b>", "no"),
    ("no_headings", {}, "We are #1.", "## Steps\nBoil it."),
    ("no_headings", {}, "A **word** in a line", "**Steps**\nBoil it."),
    ("headings", {}, "Steps\n=====\nBoil it.", "Boil it."),
    ("no_tables", {}, "a | b", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ("no_code", {}, "Call me.", "Call `me`."),
    ("code", {}, "```\nx = 1\n```", "x = 1"),
    ("no_emoji", {}, "Fine :", "Fine 🙂"),
    ("emoji", {}, "Fine 🎉", "Fine"),
    ("max_sentences", {"n": 2}, "Ask Dr. Ito, e.g. on Monday at 3.30. She knows!", "One. Two. Thr"),
    ("max_sentences", {"n": 2}, "It is\nlong but one.", "Take:\n- eggs\n- milk"),
    ("min_sentences", {"n": 3}, "One! Two? Three…", "One. Two."),
    ("max_words", {"n": 3}, "**One** well-known word", "one two three four"),
    ("min_words", {"n": 3}, "don't do it", "do not"),
    ("max_paragraphs", {"n": 1}, "a\nb", "a\n\nb"),
    ("min_paragraphs", {"n": 2}, "a\n \nb", "a\nb"),
    ("contains", {"phrases": ["well done", "bravo"]}, "Well  done!", "Well, it is done."),
    ("contains", {"phrases": ["encourag*"]}, "Encouraging.", "Courage."),
    ("contains", {"phrases": ["a", "b"], "at_least": 2}, "a or b", "a or c"),
    ("avoids", {"phrases": ["final answer"]}, "The answer is final.", "So: FINAL ANSWER 5"),
    ("avoids", {"phrases": ["bad"]}, "A badge.", "Too bad."),
    ("starts_with", {"phrases": ["dear"]}, "**Dear** Tom", "My dear Tom"),
    ("not_starts_with", {"phrases": ["sure", "of course"]}, "Boil it.", "Of course! Boil it."),
    ("ends_with", {"phrases": ["cheers"]}, "Done. Cheers!", "Cheers, all done."),
    ("ends_with", {"phrases": ["?"]}, "Shall we?", "We shall."),
    ("matches", {"pattern": r"^p\.s\."}, "Bye\nP.S. Wait", "Bye"),
    ("matches_not", {"pattern": r"\d"}, "no digits", "7"),
    ("lowercase", {}, "all small, 1!", "All small"),
    ("uppercase", {}, "ALL BIG!", "ALl"),
    ("question", {}, "Is it? Yes.", "It is."),
    ("no_question", {}, "It is.", "Is it?"),
    ("names", {"field": "name"}, "Well done, Mia!", "Miami is warm."),
    ("echoes", {"field": "work", "count": 2}, "As water rises it steams.", "Seasons of heather."),
    ("echoes", {"field": "work", "count": 2}, "Heating the sea gives steam.", "The sun and the moon."),
]


@pytest.mark.parametrize(("kind", "parameters", "kept", "broken"), KEPT_AND_BROKEN)
def test_a_check_tells_a_text_that_keeps_it_from_one_that_breaks_it(
    kind: str, parameters: dict[str, Any], kept: str, broken: str
) -> None:
    check = Check(kind, parameters)
    assert check.passes(kept, PUPIL)
    assert not check.passes(broken, PUPIL)


def test_every_kind_of_check_is_tried_here_and_has_a_description() -> None:
    assert {kind for kind, *_ in KEPT_AND_BROKEN} == set(eye.kinds())
    assert eye.describe("max_words") == "max_words(n): At most n words."


@pytest.mark.parametrize("kind", ["no_lists", "max_words", "avoids"])
def test_an_empty_answer_keeps_no_wish(kind: str) -> None:
    parameters: dict[str, Any] = {"max_words": {"n": 5}, "avoids": {"phrases": ["x"]}}.get(kind, {})
    assert not Check(kind, parameters).passes(" \n", PUPIL)


@pytest.mark.parametrize(
    ("kind", "parameters", "said"),
    [
        ("no_such", {}, "no check called"),
        ("max_words", {}, "needs the parameter 'n'"),
        ("max_words", {"n": "two"}, "whole number"),
        ("max_words", {"n": True}, "whole number"),
        ("no_lists", {"n": 2}, "no parameter 'n'"),
        ("avoids", {"phrases": []}, "list of texts"),
        ("matches", {"pattern": "("}, "regular expression"),
    ],
)
def test_a_wrongly_written_check_says_what_is_wrong(kind: str, parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Check(kind, parameters)
