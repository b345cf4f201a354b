"""What the person likes, inferred from words and from how replies were received."""

from __future__ import annotations

import pytest

from claw_local.signals.checks import Check
from claw_local.signals.preferences import _fisher, preferences

LIST = "Here you are:\n- milk\n- bread\n- eggs"
PROSE = "Buy milk and bread, and eggs if there are any."
LONG = "This is one sentence of an answer that goes on. " * 6


def test_the_exact_test_is_that_of_the_lady_tasting_tea() -> None:
    assert _fisher(4, 4, 0, 4) == pytest.approx(1 / 70)
    assert _fisher(3, 4, 1, 4) == pytest.approx(17 / 70)
    assert _fisher(0, 4, 0, 4) == 1.0


def test_what_was_said_is_certain_and_names_the_words() -> None:
    (short, plain) = preferences(["No lists please.", "Max two sentences."])[::-1]
    assert (plain.check, plain.source, plain.confidence) == (Check("no_lists"), "hint", 1.0)
    assert "No lists please." in plain.evidence
    assert short.words == "at most 2 sentences"


def test_what_is_liked_is_seen_in_the_replies() -> None:
    (found,) = preferences([], accepted=[PROSE] * 6, rejected=[LIST] * 5)
    assert (found.check, found.source) == (Check("no_lists"), "replies")
    assert found.confidence > 0.99
    assert found.evidence == "6 of 6 replies you liked were like that, and 0 of 5 you did not like"


def test_a_bound_on_length_is_seen_too() -> None:
    kinds = {p.check.kind for p in preferences([], accepted=[PROSE] * 8, rejected=[LONG] * 8)}
    assert kinds == {"max_sentences"} or kinds == {"max_words"}


def test_too_little_or_mixed_evidence_gives_nothing() -> None:
    assert preferences([], accepted=[PROSE] * 3, rejected=[LIST] * 9) == []
    assert preferences([], accepted=[PROSE] * 9, rejected=[LIST] * 2) == []
    assert preferences([], accepted=[PROSE, LIST] * 5, rejected=[LIST, PROSE] * 5) == []
    assert preferences([], accepted=[PROSE] * 9, rejected=[PROSE] * 9) == []


def test_words_go_before_what_was_seen() -> None:
    found = preferences(["Use lists, I like them."], accepted=[PROSE] * 9, rejected=[LIST] * 9)
    assert Check("uses_list") in [p.check for p in found]
    assert Check("no_lists") not in [p.check for p in found]


def test_what_the_person_denies_is_left_out() -> None:
    assert preferences([], accepted=[PROSE] * 6, rejected=[LIST] * 5, denied=["no lists"]) == []
    assert preferences(["No lists."], denied={"no lists"}) == []
