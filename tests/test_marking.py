"""What the person says outright about a reply can be taken back, with all that came of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from claw_local.assistant import Assistant
from claw_local.engine.base import Generation, Sampling
from claw_local.errors import NotFoundError
from claw_local.paths import Paths
from claw_local.signals import turns


@pytest.fixture
def assistant(home: Paths) -> Iterator[Assistant]:
    with Assistant.open() as opened:
        opened.learn.on()
        yield opened


def a_reply(assistant: Assistant) -> int:
    store = assistant.store
    _, _, reply = store.messages.go_on(store.chats.create().id, "What is rain?", learn="yes")
    made = Generation(prompt_ids=(1,), sampling=Sampling())
    made.text, made.response_ids, made.logprobs = "- Water.", [5], [-1.0]
    store.messages.finish(reply, made, state="done", timings={})
    return reply


def test_a_thumb_that_is_taken_back_is_no_lesson_and_the_judge_counts_again(assistant: Assistant) -> None:
    reply = a_reply(assistant)
    assistant.store.signals.add(reply, "judge", -1)
    assistant.feedback(reply, "good")
    assert turns.combine(assistant.signals([reply])[reply]) == (1, "")
    assistant.store.samples.put(reply, "train", 1, "")
    taken = assistant.take_back(reply)
    assert [(one.source, one.score) for one in taken.signals] == [("thumb", 1)]
    assert (taken.hints, taken.learned_by) == ((), ())
    assert turns.combine(assistant.signals([reply])[reply]) == (-1, "")
    assert assistant.store.samples.list() == []
    assert assistant.take_back(reply).signals == (), "there is nothing left to take back"
    assistant.feedback(reply, "bad")
    assert [one.source for one in assistant.signals([reply])[reply]] == ["judge", "thumb"], "it can be said anew"


def test_without_another_word_nothing_waits_to_be_learned(assistant: Assistant) -> None:
    reply = a_reply(assistant)
    assistant.feedback(reply, "bad")
    assert assistant.learn.status().lessons == 1
    assistant.take_back(reply)
    assert assistant.learn.status().lessons == 0


def test_its_hints_leave_the_prompts_and_others_stay(assistant: Assistant) -> None:
    first, second = a_reply(assistant), a_reply(assistant)
    assistant.hints.add("Talk like a captain.")
    assistant.feedback(first, "bad", hint="No lists, please.")
    assistant.feedback(second, "bad", hint="At most two sentences.")
    taken = assistant.take_back(first)
    assert [hint.text for hint in taken.hints] == ["No lists, please."]
    assert {hint.text for hint in assistant.hints.list()} == {"Talk like a captain.", "At most two sentences."}
    assert [one.hint for one in assistant.signals([second])[second]] == ["At most two sentences."]


def test_a_correction_that_is_taken_back_shows_nothing_of_what_was_meant(assistant: Assistant) -> None:
    reply = a_reply(assistant)
    assistant.feedback(reply, edit="Rain is water.")
    (turn,) = turns.pair_some(assistant.store, [reply])
    assert turn.demonstration == "Rain is water."
    assert [one.source for one in assistant.take_back(reply).signals] == ["edit"]
    (turn,) = turns.pair_some(assistant.store, [reply])
    assert (turn.demonstration, turn.score) == ("", None)
    chat = assistant.store.messages.get(reply).chat_id
    assert assistant.messages(chat)[-1].content == "Rain is water.", "the text stays where it was written"


def test_a_copy_shows_it_no_more_either_and_its_own_mark_is_its_own(assistant: Assistant) -> None:
    reply = a_reply(assistant)
    assistant.feedback(reply, "good")
    copies = [assistant.history.duplicate(assistant.store.messages.get(reply).chat_id) for _ in range(2)]
    mine, other = (assistant.messages(copy.id)[-1].id for copy in copies)
    assistant.feedback(other, "bad")
    assistant.take_back(reply)
    assert assistant.signals([mine])[mine] == []
    assert [one.score for one in assistant.signals([other])[other]] == [-1]


def test_a_copied_mark_is_taken_out_of_the_copy_alone(assistant: Assistant) -> None:
    reply = a_reply(assistant)
    assistant.feedback(reply, "good")
    copy = assistant.messages(assistant.history.duplicate(assistant.store.messages.get(reply).chat_id).id)[-1].id
    assert [one.state for one in assistant.take_back(copy).signals] == ["copied"]
    assert assistant.signals([copy])[copy] == []
    assert [one.score for one in assistant.signals([reply])[reply]] == [1]


def test_what_was_learned_from_it_is_named(assistant: Assistant) -> None:
    reply, store = a_reply(assistant), assistant.store
    assistant.feedback(reply, "good")
    store.samples.put(reply, "train", 1, "")
    store.samples.count_use([reply])
    adapter = store.adapters.add(parent_id=0, model_sha256="a" * 64, architecture="llama", lineage=[reply])
    store.adapters.add(parent_id=0, model_sha256="a" * 64, architecture="llama", lineage=[reply + 1])
    assert assistant.take_back(reply).learned_by == (adapter.id,)
    assert [sample.times_used for sample in store.samples.list()] == [1], "that it was used stays known"


def test_a_message_that_is_not_there_is_an_error(assistant: Assistant) -> None:
    with pytest.raises(NotFoundError, match="no message 77"):
        assistant.take_back(77)
