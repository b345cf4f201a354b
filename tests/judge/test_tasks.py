"""A new task is not a wish about the reply before it, however long or short its outcome shall be."""

from __future__ import annotations

import pytest

from claw_local.judge import hints, words

TASKS = [
    "Write a long story about a dragon.",
    "Write a short poem about rain.",
    "Give me a list of five birds",
    "please write a formal email to my landlord",
    "Can you tell me a funny joke about cats",
    "Now write two limericks",
    "Schreib mir eine kurze Geschichte über einen Drachen.",
    "Escríbeme un poema corto sobre la lluvia",
    "Écris-moi un petit poème sur la pluie",
    "写一首关于雨的短诗",
    "雨についての短い詩を書いて",
]
WISHES = [
    "Write a shorter answer.",
    "Write it as a list.",
    "Give me a shorter version of it",
    "Please write in plain sentences, without lists.",
    "Make it a bit shorter",
    "Write a paragraph of about 100 words",
    "Give me a list instead",
    "Use a list with short points",
    "Explain it for beginners",
    "Give me a summary in two sentences",
    "Bitte schreib kürzer",
    "Schreib eine kürzere Antwort",
    "写短一点",
    "もっと短く書いて",
]


@pytest.mark.parametrize("text", TASKS)
def test_a_task_is_no_wish_for_every_chat(text: str) -> None:
    assert words.is_new_task("What is the capital of Italy?", text)
    assert words.features("What is the capital of Italy?", "Rome.", text)["wish"] == 0.0
    assert hints.scope_of(text) == "turn"
    assert hints.clear_wish(text) == ""


@pytest.mark.parametrize("text", WISHES)
def test_a_wish_is_no_task(text: str) -> None:
    assert not words.is_task(text)


def test_the_same_task_put_another_way_is_a_wish_about_this_turn_alone() -> None:
    question, again = "Write a poem about rain.", "Write a short poem about rain."
    assert not words.is_new_task(question, again)
    assert words.features(question, "Rain falls.", again)["wish"] == 1.0
    assert hints.scope_of(again) == "turn"
