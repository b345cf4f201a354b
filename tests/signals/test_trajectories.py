"""What steps are worth, against values worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local.paths import locate
from claw_local.signals.trajectories import Step, Trajectory, worths
from claw_local.signals.turns import pair
from claw_local.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(locate(tmp_path))
    yield opened
    opened.close()


def task(store: Store, tools: list[int], *, person: int | None = None, chat_id: int | None = None) -> list[int]:
    """A task of calls that came out so, and an answer to it; `person`: what the judge read in their next message."""
    chat_id = chat_id or store.chats.create().id
    tokens = {"response_ids": [1], "logprobs": [-1.0]}
    above = store.messages.add(chat_id, "user", "Do it.", parent_id=store.chats.get(chat_id).head_id)
    replies = []
    for score in tools:
        reply = store.messages.add(chat_id, "assistant", "<tool_call>…", parent_id=above, **tokens)
        above = store.messages.add(chat_id, "tool", "result", parent_id=reply)
        store.signals.add(reply, "tool", score)
        replies.append(reply)
    last = store.messages.add(chat_id, "assistant", "Done.", parent_id=above, **tokens)
    replies.append(last)
    if person is not None:
        store.messages.add(chat_id, "user", "…", parent_id=last)
        store.signals.add(last, "judge", person)
    return replies


def found(store: Store) -> dict[int, tuple[int | None, float | None, int | None]]:
    return {turn.reply.id: (turn.step, turn.advantage, turn.score) for turn in pair(store)}


def test_one_task_keeps_its_plain_rewards(store: Store) -> None:
    # O = +1; R = O + S: 1 - 1, 1 + 1, and for the answer O alone: the person's word decides O, and counts once.
    first, second, answer = task(store, [-1, 1], person=1)
    assert found(store) == {first: (0, 0.0, -1), second: (1, 2.0, 1), answer: (2, 1.0, 1)}


def test_rewards_are_standardised_across_tasks_at_the_same_step(store: Store) -> None:
    one, two = task(store, [1], person=1), task(store, [1], person=-1)
    # Step 0: R = 1 + 1 and -1 + 1: mean 1, deviation 1. Step 1: R = 1 and -1: mean 0, deviation 1.
    worth = found(store)
    assert [worth[reply][:2] for reply in (*one, *two)] == [(0, 1.0), (1, 1.0), (0, -1.0), (1, -1.0)]


def test_without_the_persons_word_the_tools_last_verdict_is_the_outcome(store: Store) -> None:
    first, second, answer = task(store, [1, -1])
    assert found(store) == {first: (0, 0.0, 1), second: (1, -2.0, -1), answer: (2, -1.0, None)}


def test_a_thumb_on_the_answer_is_the_outcome_before_all_else(store: Store) -> None:
    (call, answer) = task(store, [1], person=1)
    store.signals.add(answer, "thumb", -1)
    assert found(store) == {call: (0, 0.0, 1), answer: (1, -1.0, -1)}


def test_where_nobody_says_anything_there_is_no_advantage_but_a_step(store: Store) -> None:
    call, answer = task(store, [0])
    assert found(store) == {call: (0, None, 0), answer: (1, None, None)}
    assert not any(turn.is_lesson for turn in pair(store))


def test_the_judges_single_votes_are_averaged() -> None:
    worth = worths([Trajectory((Step(1, (1, 1, -1, 1)), Step(2, ())), -1)])
    assert worth == {1: (0, -0.5), 2: (1, -1.0)}


def test_a_chat_without_tools_has_no_steps_and_tasks_of_one_chat_stand_apart(store: Store) -> None:
    chat_id = store.chats.create().id
    one, two = task(store, [1], person=1, chat_id=chat_id), task(store, [-1], person=-1, chat_id=chat_id)
    plain = store.chats.create().id
    asked = store.messages.add(plain, "user", "Hello.", parent_id=None)
    said = store.messages.add(plain, "assistant", "Hi.", parent_id=asked, response_ids=[1], logprobs=[-1.0])
    worth = found(store)
    assert worth[said] == (None, None, None)
    assert [worth[reply][0] for reply in (*one, *two)] == [0, 1, 0, 1]
    # Step 0: R = 1 + 1 and -1 - 1: mean 0, deviation 2.
    assert worth[one[0]][1] == 1.0 and worth[two[0]][1] == -1.0


def test_of_two_answers_to_the_same_result_the_newest_is_the_tasks_end(store: Store) -> None:
    call, answer = task(store, [1], person=-1)
    parent = store.messages.get(answer).parent_id
    chat_id = store.messages.get(answer).chat_id
    again = store.messages.add(chat_id, "assistant", "Better.", parent_id=parent, response_ids=[1], logprobs=[-1.0])
    store.signals.add(again, "thumb", 1)
    worth = found(store)
    assert worth[call] == (0, 2.0, 1) and worth[again] == (1, 1.0, 1)
    assert worth[answer][0] is None and worth[answer][2] == -1


def test_a_step_is_asked_about_by_the_persons_words_and_kept_with_its_index(store: Store) -> None:
    call, answer = task(store, [1], person=1)
    turns = {turn.reply.id: turn for turn in pair(store)}
    assert {turn.question for turn in turns.values()} == {"Do it."}
    assert turns[call].reward == 2.0 and turns[call].is_lesson
    assert {turn.split for turn in turns.values()} == {"train"}
    store.samples.put(call, "train", 1, "", step=turns[call].step, advantage=turns[call].advantage)
    (sample,) = store.samples.list()
    assert (sample.step, sample.advantage) == (0, 2.0)
    assert answer in turns
