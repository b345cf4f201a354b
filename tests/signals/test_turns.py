"""Turns: a reply, its next state, and what that makes it worth."""

from __future__ import annotations

import pytest

from claw_local.engine.base import Generation, Sampling
from claw_local.paths import Paths
from claw_local.signals import turns
from claw_local.store import Signal, Store


def say(store: Store, chat_id: int, question: str, answer: str) -> int:
    head = store.chats.get(chat_id).head_id
    _, reply = store.messages.begin_turn(chat_id, question, parent_id=head)
    made = Generation(prompt_ids=(1,), sampling=Sampling())
    made.text, made.response_ids, made.logprobs = answer, [2], [-1.0]
    store.messages.finish(reply, made, state="done", timings={})
    return reply


def signal(source: str, score: int, hint: str = "") -> Signal:
    return Signal(0, 0, source, score, hint, {}, "", "active", "")  # type: ignore[arg-type]


def test_the_next_message_of_the_same_branch_is_the_next_state(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create()
    first = say(store, chat.id, "one", "1")
    second = say(store, chat.id, "that is wrong", "2")
    made = {turn.reply.id: turn for turn in turns.pair(store)}
    state = made[first].next_state
    assert state is not None and state.content == "that is wrong"
    assert made[second].next_state is None
    assert [message.content for message in made[second].history] == ["one", "1", "that is wrong"]
    assert made[first].question == "one"


def test_a_regenerated_reply_is_not_judged_by_what_follows_its_sibling(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create()
    first = say(store, chat.id, "one", "1")
    user = store.messages.get(first).parent_id
    _, second = store.messages.begin_turn(chat.id, None, parent_id=user)
    made = Generation(prompt_ids=(1,), sampling=Sampling())
    made.text, made.response_ids = "uno", [3]
    store.messages.finish(second, made, state="done", timings={})
    store.messages.add(chat.id, "user", "thanks", parent_id=second)
    by_id = {turn.reply.id: turn for turn in turns.pair(store)}
    assert by_id[first].next_state is None
    assert by_id[second].next_state is not None


@pytest.mark.parametrize(
    ("signals", "expected"),
    [
        ([], (None, "")),
        ([signal("judge", 1)], (1, "")),
        ([signal("judge", 1), signal("thumb", -1)], (-1, "")),
        ([signal("tool", -1), signal("judge", 1, "shorter")], (-1, "shorter")),
        ([signal("edit", -1, "like this"), signal("judge", 1, "shorter")], (-1, "like this")),
        ([signal("regenerate", -1), signal("thumb", 1)], (1, "")),
        ([signal("regenerate", -1), signal("judge", 1)], (-1, "")),
    ],
)
def test_a_persons_word_goes_before_a_tools_and_that_before_the_judges(
    signals: list[Signal], expected: tuple[int | None, str]
) -> None:
    assert turns.combine(signals) == expected


def test_an_edited_reply_is_a_demonstration(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create()
    reply = say(store, chat.id, "one", "1")
    store.messages.add(chat.id, "assistant", "It is one.", parent_id=store.messages.get(reply).parent_id)
    store.signals.add(reply, "edit", -1)
    (turn,) = turns.pair(store)
    assert turn.demonstration == "It is one."
    assert turn.is_lesson


def test_held_out_is_a_stable_quarter_and_one_question_never_stands_on_both_sides() -> None:
    splits = [turns.split_of(f"question number {n}") for n in range(2000)]
    assert 0.21 < splits.count("held-out") / 2000 < 0.29
    assert turns.split_of("What is  A?") == turns.split_of("what is a?")


def test_turns_wait_until_the_judge_has_read_them(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create()
    first = say(store, chat.id, "one", "1")
    assert turns.waiting(store) == []
    say(store, chat.id, "thanks", "welcome")
    assert [turn.reply.id for turn in turns.waiting(store)] == [first]
    store.signals.add(first, "judge", 1)
    assert turns.waiting(store) == []
