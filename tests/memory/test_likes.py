"""What the person likes, read from a store."""

from __future__ import annotations

import pytest

from claw_local.assistant import Assistant
from claw_local.errors import UsageError
from claw_local.paths import Paths

LIST = "Here you are:\n- milk\n- bread"


@pytest.fixture
def assistant(home: Paths) -> Assistant:
    return Assistant.open()


def reply(assistant: Assistant, text: str, *, good: bool) -> int:
    store = assistant.store
    chat = store.chats.create(title="t").id
    user = store.messages.add(chat, "user", "What do I need?", parent_id=None)
    message = store.messages.add(chat, "assistant", text, parent_id=user, response_ids=[1, 2], logprobs=[-1.0, -1.0])
    store.signals.add(message, "thumb", 1 if good else -1)
    return message


def test_likes_come_from_hints_and_from_thumbs(assistant: Assistant) -> None:
    assistant.hints.add("At most two sentences.")
    for _ in range(5):
        reply(assistant, "Milk and bread.", good=True)
        reply(assistant, LIST, good=False)
    assert [(like.words, like.source) for like in assistant.learn.likes()] == [
        ("at most 2 sentences", "hint"),
        ("no lists", "replies"),
    ]


def test_an_edit_shows_what_was_meant(assistant: Assistant) -> None:
    for _ in range(4):
        assistant.feedback(reply(assistant, LIST, good=True), edit="Milk and bread.")
    assert [like.words for like in assistant.learn.likes()] == ["no lists"]


def test_the_person_can_say_that_it_is_not_so(assistant: Assistant) -> None:
    assistant.hints.add("No lists, please.")
    with pytest.raises(UsageError, match="no lists"):
        assistant.learn.deny("no emoji")
    assistant.learn.deny("no lists")
    assert assistant.learn.likes() == []
    assistant.learn.allow("no lists")
    assert [like.words for like in assistant.learn.likes()] == ["no lists"]
    with pytest.raises(UsageError, match="nothing was"):
        assistant.learn.allow("no lists")


def test_a_dropped_hint_is_no_longer_a_like(assistant: Assistant) -> None:
    hint = assistant.hints.add("No lists, please.")
    assistant.hints.drop(hint.id)
    assert assistant.learn.likes() == []
