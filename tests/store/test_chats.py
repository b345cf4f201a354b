"""Chats, their tree of messages, and replies that do not come to their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from claw_local.engine.base import Generation, Sampling
from claw_local.errors import NotFoundError
from claw_local.paths import Paths
from claw_local.store import Chat, Store
from claw_local.store.chats import Teaching
from claw_local.store.processes import process_identity, process_lives


def generation(text: str = "hello") -> Generation:
    made = Generation(prompt_ids=(1, 2, 3), sampling=Sampling(seed=4))
    made.text, made.response_ids, made.logprobs, made.seed = text, [5, 6], [-0.5, -1.25], 4
    return made


def test_a_turn_keeps_tokens_logprobs_and_sampling(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create(title="t")
    user, reply = store.messages.begin_turn(chat.id, "hi", parent_id=None)
    store.messages.finish(reply, generation(), state="done", timings={"total": 1.5})
    question, answer = store.messages.branch(store.chats.get(chat.id).head_id)
    assert (question.id, question.content, question.role) == (user, "hi", "user")
    assert answer.content == "hello"
    assert answer.prompt_ids == (1, 2, 3)
    assert answer.response_ids == (5, 6)
    assert answer.logprobs == (-0.5, -1.25)
    assert answer.sampling["seed"] == 4
    assert answer.timings == {"total": 1.5}
    assert answer.state == "done"


def test_editing_and_regenerating_branch_and_overwrite_nothing(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create()
    user, first = store.messages.begin_turn(chat.id, "hi", parent_id=None)
    store.messages.finish(first, generation("one"), state="done", timings={})
    _, second = store.messages.begin_turn(chat.id, None, parent_id=user)
    store.messages.finish(second, generation("two"), state="done", timings={})
    shown = store.messages.branch(store.chats.get(chat.id).head_id)
    assert [message.content for message in shown] == ["hi", "two"]
    assert store.messages.get(first).content == "one"
    assert [message.id for message in store.messages.siblings(second)] == [first]


def test_a_killed_process_loses_nothing_that_was_shown(home: Paths) -> None:
    script = f"""
import os, sys
from claw_local.paths import locate
from claw_local.store import Store
store = Store(locate({str(home.data)!r}))
chat = store.chats.create()
user, reply = store.messages.begin_turn(chat.id, "hi", parent_id=None)
for word in ("one ", "two ", "three"):
    store.messages.append_piece(reply, word)
print(reply, flush=True)
sys.stdin.read()
"""
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=os.getcwd(), text=True
    )
    assert child.stdout is not None
    reply = int(child.stdout.readline())
    alive = Store(home)
    assert alive.messages.get(reply).state == "streaming", "a reply that a live process writes is left to it"
    child.send_signal(signal.SIGKILL)
    child.wait()
    message = Store(home).messages.get(reply)
    assert (message.state, message.content) == ("interrupted", "one two three")


def test_deleting_a_chat_takes_everything_that_hangs_on_it(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create()
    _, reply = store.messages.begin_turn(chat.id, "hi", parent_id=None)
    store.messages.finish(reply, generation("unforgettable"), state="done", timings={})
    store.signals.add(reply, "thumb", 1)
    store.hints.add("shorter please", message_id=reply, chat_id=chat.id)
    store.samples.put(reply, "train", 1, "")
    store.chats.delete(chat.id)
    for table in ("chats", "messages", "signals", "hints", "samples", "pieces"):
        assert store.database.db.table(table).count == 0, table
    assert store.search.find("unforgettable", limit=5) == []


def test_full_text_search_finds_finished_messages(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create()
    _, reply = store.messages.begin_turn(chat.id, "how do kites fly", parent_id=None)
    store.messages.finish(reply, generation("by lift and tension"), state="done", timings={})
    assert [hit.message_id for hit in store.search.find("tension", limit=5)] == [reply]


def test_what_is_not_there_is_said(home: Paths) -> None:
    store = Store(home)
    with pytest.raises(NotFoundError, match="chat 7"):
        store.chats.get(7)
    with pytest.raises(NotFoundError, match="message 8"):
        store.messages.get(8)


def test_only_replies_that_may_teach_are_given_to_the_trainer(home: Paths) -> None:
    store = Store(home)
    teaching, private = store.chats.create(), store.chats.create(learn=False)
    ids = []
    choices: list[tuple[Chat, Teaching]] = [
        (teaching, "yes"),
        (teaching, "off"),
        (private, "yes"),
        (teaching, "never"),
    ]
    for chat, learn in choices:
        head = store.chats.get(chat.id).head_id
        _, reply = store.messages.begin_turn(chat.id, "q", parent_id=head, learn=learn)
        store.messages.finish(reply, generation(), state="done", timings={})
        ids.append(reply)
    assert [message.id for message in store.messages.teaching_replies()] == [ids[0]]
    assert store.messages.count_silent() == 1
    assert store.messages.let_past_teach() == 1
    assert [message.id for message in store.messages.teaching_replies()] == [ids[0], ids[1]], "never means never"


def test_a_process_is_known_by_number_and_start() -> None:
    mine = process_identity()
    assert process_lives(mine)
    pid = mine.split(":")[0]
    assert not process_lives(f"{pid}:1.00"), "the same number, another process"
    assert not process_lives("")
