"""No flood of rewards drives the policy, and no secret is a lesson."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from claw_local.judge.bounds import SAME_WORDS, bounded, without_secrets
from claw_local.signals.turns import Turn
from claw_local.store import Store, StoredMessage


@pytest.fixture
def store(home: Any) -> Store:
    return Store(home)


def message(store: Store, chat: int, role: Any, text: str, parent: int | None) -> StoredMessage:
    return store.messages.get(store.messages.add(chat, role, text, parent_id=parent))


def turns_of(store: Store, count: int, *, reply: str = "Rain falls.", said: str = "", score: int = 1) -> list[Turn]:
    """Turns of one chat, all with this score; `said` may have a {} for the turn's number in letters."""
    chat = store.chats.create(title="x").id
    found = []
    for number in range(count):
        question = message(store, chat, "user", f"Question {number}?", None)
        answer = message(store, chat, "assistant", reply, question.id)
        letters = "".join(chr(97 + int(digit)) for digit in str(number))
        following = message(store, chat, "user", said.format(letters), answer.id) if said else None
        found.append(Turn((question,), answer, following, score, "", "", False))
    return found


def total(turns: list[Turn]) -> float:
    return sum(turn.reward or 0 for turn in turns)


def test_one_chat_brings_so_many_rewards_only(store: Store) -> None:
    turns = turns_of(store, 30, said="Great {}!")
    kept = bounded(turns, per_chat=10, per_day=100)
    assert total(kept) == 10
    assert [turn.reply.id for turn in kept] == [turn.reply.id for turn in turns]
    assert [turn.score for turn in kept[:10]] == [1] * 10


def test_one_day_brings_so_many_over_all_chats(store: Store) -> None:
    turns = [turn for _ in range(5) for turn in turns_of(store, 5, said="Great {}!")]
    assert total(bounded(turns, per_chat=10, per_day=12)) == 12
    tomorrow = [replace(turn, reply=replace(turn.reply, created_at="2031-01-01T00:00:00")) for turn in turns[12:]]
    assert total(bounded([*turns[:12], *tomorrow], per_chat=10, per_day=13)) == 25


@pytest.mark.parametrize("score", [1, -1])
def test_the_same_words_count_a_few_times(store: Store, score: int) -> None:
    turns = turns_of(store, 20, said="Perfect!! thanks", score=score)
    assert total(bounded(turns, per_chat=100, per_day=100)) == SAME_WORDS * score


def test_praise_for_a_refusal_is_no_reward_and_blame_for_it_is(store: Store) -> None:
    refusal = "I'm sorry, but I can't help with that."
    assert total(bounded(turns_of(store, 5, reply=refusal), per_chat=100, per_day=100)) == 0
    assert total(bounded(turns_of(store, 5, reply=refusal, score=-1), per_chat=100, per_day=100)) == -5


def test_what_is_beyond_keeps_its_hint_and_an_edit_comes_first(store: Store) -> None:
    turns = turns_of(store, 4)
    turns[3] = replace(turns[3], demonstration="Rain is water.", hint="Shorter, please.", score=-1)
    turns[2] = replace(turns[2], hint="In lowercase, please.")
    kept = bounded(turns, per_chat=1, per_day=10)
    assert [turn.score for turn in kept] == [0, 0, 0, -1]
    assert kept[2].hint == "In lowercase, please." and kept[2].is_lesson


def test_a_step_beyond_the_bounds_has_no_advantage(store: Store) -> None:
    turns = [replace(turn, step=0, advantage=1.5) for turn in turns_of(store, 3)]
    kept = bounded(turns, per_chat=2, per_day=10)
    assert [turn.reward for turn in kept] == [turn.advantage for turn in kept] == [1.5, 1.5, 0.0]


def test_a_turn_with_a_secret_anywhere_in_it_is_left_out(store: Store) -> None:
    secret = "sk-proj-Zy8mQ4vT2nR7wK1pL5xB9cD3"
    first, second, third = turns_of(store, 3)
    told = message(store, first.reply.chat_id, "user", f"My key is {secret}.", None)
    turns = [replace(first, history=(told,)), replace(second, hint=f"Call me {secret}, please."), third]
    assert without_secrets(turns) == [third]
    assert without_secrets([first, second, third]) == [first, second, third]


def test_what_was_said_is_compared_by_its_letters_alone(store: Store) -> None:
    first = turns_of(store, 2, said="Perfect, thanks {}!")
    same = [*turns_of(store, 2, said="PERFECT! thanks."), *turns_of(store, 2, said="perfect thanks")]
    assert total(bounded(first, per_chat=9, per_day=9)) == 2, "different words"
    alike = [replace(turn, reply=replace(turn.reply, chat_id=same[0].reply.chat_id)) for turn in same]
    assert [turn.reward for turn in bounded(alike, per_chat=9, per_day=9)] == [1, 1, 1, 0]
    assert total(bounded(same, per_chat=9, per_day=9)) == 4, "in each chat for itself"
    apart = [*turns_of(store, 3, said="well done"), *turns_of(store, 1, said="welldone")]
    together = [replace(turn, reply=replace(turn.reply, chat_id=apart[0].reply.chat_id)) for turn in apart]
    assert total(bounded(together, per_chat=9, per_day=9)) == 4, "two words are not one"


def test_thumbs_without_words_and_tools_are_not_the_same_words(store: Store) -> None:
    assert total(bounded(turns_of(store, 6), per_chat=9, per_day=9)) == 6
    told = [
        replace(turn, next_state=replace(turn.next_state, role="tool"))
        for turn in turns_of(store, 6, said="exit code: 0")
        if turn.next_state is not None
    ]
    assert total(bounded(told, per_chat=9, per_day=9)) == 6


def test_turns_without_a_reward_take_no_place(store: Store) -> None:
    turns = [*turns_of(store, 5, score=0), *turns_of(store, 3)]
    kept = bounded(turns, per_chat=2, per_day=3)
    assert [turn.reward or 0 for turn in kept] == [0] * 5 + [1, 1, 0]
    assert kept[-1].advantage is None, "one that was no step stays none"


def test_a_secret_in_a_reply_or_in_an_edit_is_left_out_too(store: Store) -> None:
    secret = "sk-proj-Zy8mQ4vT2nR7wK1pL5xB9cD3"
    first, second, third = turns_of(store, 3)
    told = replace(first, reply=replace(first.reply, id=10**6, content=f"It is {secret}."))
    assert without_secrets([told, replace(second, demonstration=f"Use {secret}."), third]) == [third]
