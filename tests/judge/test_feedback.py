"""What a person made known outright, as cases for the judge to learn from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from claw_local.judge.feedback import MOST, Feedback, explicit_feedback
from claw_local.paths import Paths
from claw_local.signals.attached import Attachment, compose
from claw_local.store import Store

FILE = Attachment("rules.md", "That is wrong!\n")
REPLY = "1. Water"


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


def a_reply(store: Store, following: str = "", *, role: Any = "user", question: str = "What is rain?") -> int:
    chat = store.chats.create().id
    asked = store.messages.add(chat, "user", question, parent_id=None, learn="yes")
    reply = store.messages.add(chat, "assistant", REPLY, parent_id=asked, learn="yes")
    if following:
        store.messages.add(chat, role, following, parent_id=reply, learn="yes")
    return reply


def case(reply: int, asked: Any, text: str, outcome: Any, *, of: str = REPLY) -> Feedback:
    return Feedback(reply, asked, "What is rain?", of, text, outcome)


def test_a_thumb_says_how_the_next_message_should_have_been_read(store: Store) -> None:
    good, bad, none, tool, file = (
        a_reply(store, "Thanks!"),
        a_reply(store, "Hm."),
        a_reply(store),
        a_reply(store, "exit code: 0", role="tool"),
        a_reply(store, compose([FILE])),
    )
    for reply, score in ((good, 1), (bad, -1), (none, 1), (tool, 1), (file, -1)):
        store.signals.add(reply, "thumb", score)
    assert explicit_feedback(store) == [case(good, "next", "Thanks!", 1), case(bad, "next", "Hm.", -1)]


def test_a_hint_says_that_the_reply_did_not_follow_it(store: Store) -> None:
    bad, good = a_reply(store, "Hm."), a_reply(store)
    store.signals.add(bad, "thumb", -1, hint="No lists.")
    store.signals.add(good, "thumb", 1, hint="No lists.")
    assert explicit_feedback(store) == [case(bad, "next", "Hm.", -1), case(bad, "follows", "No lists.", -1)]


def test_an_edit_follows_the_hint_that_the_old_text_did_not(store: Store) -> None:
    reply = a_reply(store, "Hm.")
    message = store.messages.get(reply)
    store.messages.add(message.chat_id, "assistant", "Water.", parent_id=message.parent_id, learn="yes")
    store.signals.add(reply, "edit", -1, hint="No lists.")
    store.signals.add(reply, "thumb", -1, hint="No numbers.")
    assert explicit_feedback(store) == [
        case(reply, "next", "Hm.", -1),
        case(reply, "follows", "No numbers.", -1),
        case(reply, "follows", "No numbers.", 1, of="Water."),
        case(reply, "follows", "No lists.", -1),
        case(reply, "follows", "No lists.", 1, of="Water."),
    ]


def test_an_edit_alone_says_it_too(store: Store) -> None:
    reply = a_reply(store, "Hm.")
    store.signals.add(reply, "edit", -1, hint="No lists.")
    assert explicit_feedback(store) == [case(reply, "next", "Hm.", -1), case(reply, "follows", "No lists.", -1)]


def test_a_judges_word_and_a_thumb_that_was_taken_back_say_nothing(store: Store) -> None:
    judged, taken_back = a_reply(store, "Hm."), a_reply(store, "Thanks!")
    store.signals.add(judged, "judge", -1, hint="No lists.")
    store.signals.add(taken_back, "thumb", 0)
    assert explicit_feedback(store) == []


def test_files_are_not_the_persons_words(store: Store) -> None:
    reply = a_reply(store, compose(["Thanks!", FILE]), question=compose(["What is rain?", FILE]))
    store.signals.add(reply, "thumb", 1)
    assert explicit_feedback(store) == [case(reply, "next", "Thanks!", 1)]


def test_only_the_newest_are_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(type(store.signals), "spoken_of", lambda self, most: asked.append(most) or [])
    assert explicit_feedback(store) == [] and asked == [MOST]
