"""What is read off a message's wording, name by name, and which words are told of it. No shipped weights."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from claw_local.judge.phrases import Phrases, features

MESSAGE = "No lists, no bold at all"


def key(name: str) -> int:
    return zlib.crc32(name.encode())


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("w:lists", True),
        ("w:no lists", False),
        ("b:no lists", True),
        ("t:no lists ,", True),
        ("t:no lists", False),
        ("p0:no", True),
        ("p3:no", True),
        ("p4:bold", False),  # Only the first four have their place.
        ("first:no lists", True),
        ("first:no lists ,", False),
        ("last:at all", True),
        ("last:bold at all", False),
        ("c2:^n", True),
        ("c2:l$", True),
        ("c2:$", False),
        ("c5:^no l", True),
        ("c5: all$", True),
        ("c5:all$", False),
        ("length:1", True),
        ("asks:False", True),
        ("question:0", True),
        ("reply:2", True),  # "lists" of lists and bold.
        ("asks:False question:0 reply:2", True),
    ],
)
def test_a_wording_is_read_by_words_neighbours_places_and_letters(name: str, read: bool) -> None:
    assert (key(name) in features("How?", "Here are lists.", MESSAGE).tolist()) is read


def test_a_question_asks() -> None:
    found = features("", "", "Why? ").tolist()
    assert key("asks:True") in found and key("asks:False") not in found and key("length:0") in found


def knowing(**weights: list[int]) -> Phrases:
    """A model of some words, or of pairs of them joined by an underscore."""
    by_key = {
        key(f"{'b' if '_' in name else 'w'}:{name.replace('_', ' ')}"): weight for name, weight in weights.items()
    }
    keys = sorted(by_key)
    table = np.array([by_key[one] for one in keys], dtype=np.int8)
    return Phrases(np.array(keys, dtype=np.uint32), table, 0.1, np.zeros(3))


def test_the_words_that_speak_most_are_told_the_strongest_first() -> None:
    some = knowing(great=[9, 0, 0], good=[1, 0, 0], fine=[1, 1, 1], plain=[0, 0, 3], nice=[5, 0, 0], lovely=[3, 0, 0])
    assert some.telling("good plain fine great", "good") == ["great", "good"], "not what speaks for none or another"
    assert some.telling("good plain fine great", "bad") == ["plain"]
    assert some.telling("good lovely nice great", "good") == ["great", "nice", "lovely"], "three at most"
    assert some.telling("good lovely nice great", "good", most=1) == ["great"]


def test_words_within_what_is_told_already_are_not_told_again() -> None:
    some = knowing(great_job=[20, 0, 0], great=[9, 0, 0], job=[8, 0, 0], nice=[5, 0, 0])
    assert some.telling("Great job, nice!", "good") == ["great job", "nice"]
    other = knowing(great_job=[5, 0, 0], great=[9, 0, 0], nice=[8, 0, 0])
    assert other.telling("Great job, nice!", "good") == ["great", "nice"]
