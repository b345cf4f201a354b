"""Fast memory: what stands in the prompt, and which hint makes way for which."""

from __future__ import annotations

import pytest

from claw_local.memory.fast import remember, replaces, with_hints, wording
from claw_local.memory.prompt import prompt_messages
from claw_local.paths import Paths
from claw_local.store import Store


def test_hints_stand_at_the_end_of_the_question() -> None:
    assert with_hints("Why is the sky blue?", []) == "Why is the sky blue?"
    assert with_hints("Why?", ["no lists", "Be brief!"]) == "Why?\n\nno lists. Be brief!"


def test_hints_stand_behind_what_a_tool_returned_where_that_is_told_in_words(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create(title="Work").id
    parent = None
    for role, text in (("user", "Read a.txt."), ("assistant", "read a.txt"), ("tool", "milk")):
        parent = store.messages.add(chat, role, text, parent_id=parent)
    assert parent is not None
    branch = store.messages.branch(parent)

    def said(*, in_words: bool) -> list[tuple[str, str]]:
        made = prompt_messages("", branch, ["Be brief."], model_sha256="", in_words=in_words)
        return [(message.role, message.content) for message in made]

    assert said(in_words=True)[2:] == [("tool", "milk"), ("user", "Be brief.")]
    assert said(in_words=True)[0] == ("user", "Read a.txt.")
    assert said(in_words=False)[::2] == [("user", "Read a.txt.\n\nBe brief."), ("tool", "milk")]
    assert prompt_messages("", branch, [], model_sha256="", in_words=True)[-1].content == "milk"


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("that's way too long, two sentences max please", "Please answer with at most 2 sentences."),
        ("I hate lists, just write normal sentences", "Please answer with no bold, no headings, no lists."),
        (
            "I don't like the numbered list. Plain sentences please",
            "Please answer with no lists. Plain sentences please.",
        ),
        ("No bullet points please.", "No bullet points please."),
        ("Talk like a pirate", "Talk like a pirate."),
    ],
)
def test_a_complaint_stands_in_the_prompt_as_the_wish_it_comes_down_to(hint: str, expected: str) -> None:
    assert wording(hint) == expected


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ("Please do not use lists.", "please do not use lists", True),
        ("No bullet points, please.", "Don't use lists.", True),
        ("Use bullet points from now on.", "No lists please.", True),
        ("No bullet points, please.", "At most two sentences.", False),
        ("Call me Sam, always.", "No lists please.", False),
        ("Be warm and kind to me", "Be warm and kind to me please", True),
    ],
)
def test_a_hint_makes_way_for_one_that_says_the_same_or_the_opposite(new: str, old: str, expected: bool) -> None:
    assert replaces(new, old) is expected


def test_remembering_drops_what_is_replaced_and_keeps_the_rest(home: Paths) -> None:
    store = Store(home)
    lists = store.hints.add("Don't use lists.")
    short = store.hints.add("At most two sentences.")
    new = store.hints.add("No bullet points, please.")
    assert [hint.id for hint in remember(store, new)] == [lists.id]
    assert [hint.id for hint in store.hints.list()] == [new.id, short.id]


def test_a_hint_that_an_older_one_says_already_is_not_kept_twice(home: Paths) -> None:
    store = Store(home)
    whole = store.hints.add("Plain prose, no lists, no headings and no bold.")
    part = store.hints.add("No bullet points, please.")
    assert [hint.id for hint in remember(store, part)] == [part.id]
    assert [hint.id for hint in store.hints.list()] == [whole.id]


def test_a_hint_for_one_turn_replaces_nothing(home: Paths) -> None:
    store = Store(home)
    store.hints.add("Don't use lists.")
    new = store.hints.add("Don't use lists.", scope="turn")
    assert remember(store, new) == []


def test_the_same_wish_in_the_same_words_leaves_the_first_as_it_is(home: Paths) -> None:
    store = Store(home)
    first = store.hints.add("No lists, please.", scope="everywhere")
    again = store.hints.add("no lists please", scope="everywhere")
    assert [hint.id for hint in remember(store, again)] == [again.id]
    assert [hint.id for hint in store.hints.list()] == [first.id]
