"""Versions of a message, chat settings, comparing, and why an answer came out as it did, on the embedded model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.engine.base import Sampling
from claw_local.errors import ModelError, NotFoundError, UsageError
from claw_local.settings import ModelSettings, Settings
from tests.engine.conftest import write_lora

SHORT = Sampling(max_tokens=6, seed=3)
SETTINGS = Settings(model=ModelSettings(context=1024, threads=1))


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory, model_path: Path) -> Iterator[Assistant]:
    with Assistant.open(tmp_path_factory.mktemp("home"), model=model_path, settings=SETTINGS) as opened:
        yield opened


def shown(assistant: Assistant, chat_id: int) -> list[int]:
    return [message.id for message in assistant.messages(chat_id)]


def test_a_question_asked_in_other_words_is_a_branch_and_the_old_one_keeps_what_followed(assistant: Assistant) -> None:
    first = assistant.ask("What is rain?", sampling=SHORT)
    second = assistant.ask("And snow?", chat=first.chat_id, sampling=SHORT)
    question, reply, follow_up, last = shown(assistant, first.chat_id)
    edited = assistant.edit_question(question, "What is hail?", sampling=SHORT)
    edited_answer = edited.answer
    assert [m.content for m in assistant.messages(first.chat_id)] == ["What is hail?", edited_answer.text]
    assert (
        assistant.versions(question) == assistant.versions(edited.user_message_id) == [question, edited.user_message_id]
    )
    assert assistant.versions(reply) == [reply], "a reply's versions answer the same question"
    assistant.show_version(question)
    assert shown(assistant, first.chat_id) == [question, reply, follow_up, last] and last == second.message_id


def test_versions_of_a_reply_are_walked_down_to_what_came_last(assistant: Assistant) -> None:
    first = assistant.ask("What is wind?", sampling=SHORT)
    follow_up = assistant.ask("Why?", chat=first.chat_id, sampling=SHORT)
    again = assistant.regenerate(first.message_id, sampling=SHORT).answer
    before = assistant.chat(first.chat_id).updated_at
    assert assistant.versions(again.message_id) == [first.message_id, again.message_id]
    assert shown(assistant, first.chat_id)[-1] == again.message_id
    assistant.show_version(first.message_id)
    assert shown(assistant, first.chat_id)[-1] == follow_up.message_id
    assert assistant.chat(first.chat_id).updated_at == before, "to look is not to change"


def test_only_a_question_can_be_asked_in_other_words(assistant: Assistant) -> None:
    answer = assistant.ask("What is fog?", sampling=SHORT)
    with pytest.raises(UsageError, match="not one of yours"):
        assistant.edit_question(answer.message_id, "x")
    with pytest.raises(UsageError, match="no question"):
        assistant.edit_question(shown(assistant, answer.chat_id)[0], "  ")
    with pytest.raises(NotFoundError):
        assistant.edit_question(99_999, "x")


def test_what_was_asked_in_private_stays_private_when_it_is_asked_again(assistant: Assistant) -> None:
    assistant.learn.on()
    try:
        private = assistant.ask("What is dew?", sampling=SHORT, learn=False)
        open_ = assistant.ask("What is ice?", sampling=SHORT)
        again = assistant.edit_question(shown(assistant, private.chat_id)[0], "What is frost?", sampling=SHORT).answer
        anew = assistant.regenerate(private.message_id, sampling=SHORT).answer
        teaching = assistant.regenerate(open_.message_id, sampling=SHORT).answer
        of = assistant.store.messages.teaching_of
        assert [of(m.message_id) for m in (private, again, anew, teaching)] == ["never", "never", "never", "yes"]
    finally:
        assistant.learn.off()


def test_a_chats_own_settings_hold_for_its_replies_and_one_call_goes_before_them(assistant: Assistant) -> None:
    chat = assistant.new_chat(sampling={"max_tokens": 3, "seed": 5})
    changed = assistant.set_chat(chat.id, system="Speak like a pirate.", learn=False)
    assert (changed.system, changed.learn, changed.sampling) == (
        "Speak like a pirate.",
        False,
        {"max_tokens": 3, "seed": 5},
    )
    answer = assistant.ask("Who are you?", chat=chat.id)
    assert answer.completion_tokens == 3
    why = assistant.why(answer.message_id)
    assert (why.sampling["max_tokens"], why.sampling["seed"], why.sampling["temperature"]) == (3, 5, 0.7)
    assert assistant.ask("Who?", chat=chat.id, sampling={"max_tokens": 2}).completion_tokens == 2
    assert assistant.set_chat(chat.id, sampling={}).sampling == {}
    assert assistant.set_chat(chat.id).system == "Speak like a pirate."


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        ({"warmth": 1}, "no sampling setting 'warmth'"),
        ({"temperature": 9.0}, "temperature is not valid"),
        ({"max_tokens": 0}, "max_tokens is not valid"),
        ({"seed": -1}, "whole number"),
        ({"stop": "x"}, "list of texts"),
    ],
)
def test_settings_that_cannot_be_are_refused(assistant: Assistant, sampling: dict[str, object], said: str) -> None:
    chat = assistant.new_chat()
    with pytest.raises(UsageError, match=said):
        assistant.set_chat(chat.id, sampling=sampling)
    with pytest.raises(UsageError, match=said):
        assistant.stream("Hello", sampling=sampling)
    assert assistant.chat(chat.id).sampling == {}


def test_a_model_that_cannot_be_is_refused(assistant: Assistant) -> None:
    chat = assistant.new_chat()
    with pytest.raises(ModelError, match=r"no model file missing\.gguf"):
        assistant.set_chat(chat.id, model="missing.gguf")
    with pytest.raises(UsageError, match="names no model"):
        assistant.set_chat(chat.id, model="ollama:")
    assert assistant.set_chat(chat.id, model="ollama:llama3.2").model == "ollama:llama3.2", "its server is not asked"
    assert assistant.set_chat(chat.id, model="").model == ""


def test_why_tells_what_stood_behind_a_reply_even_after_it_was_changed(assistant: Assistant) -> None:
    hint = assistant.hints.add("Answer in one short sentence.")
    try:
        answer = assistant.ask("What is tea?", system="Be kind.", sampling=SHORT)
    finally:
        assistant.hints.drop(hint.id)
    assistant.set_chat(answer.chat_id, system="Be rude.")
    why = assistant.why(answer.message_id)
    assert [found.text for found in why.hints] == ["Answer in one short sentence."]
    assert (why.system, why.adapter, why.model) == ("Be kind.", None, answer.model)
    assert (why.prompt_tokens, why.completion_tokens) == (answer.prompt_tokens, answer.completion_tokens)
    assert set(why.timings) == {"load", "first_token", "total"}
    with pytest.raises(UsageError, match="not a reply"):
        assistant.why(shown(assistant, answer.chat_id)[0])


def test_two_adapters_are_compared_blind_and_the_vote_counts(assistant: Assistant, tmp_path: Path) -> None:
    file = write_lora(tmp_path / "adapter.gguf")
    adapter = assistant.store.adapters.add(
        parent_id=0, model_sha256=assistant.model_sha256, architecture="llama", gguf_path=str(file)
    )
    orders = set()
    for n in range(12):
        left, right = assistant.compare(f"What is number {n}?", adapter.id, "base", sampling=Sampling(max_tokens=2))
        assert left.user_message_id == right.user_message_id
        if n == 0:
            ids = (left.answer.message_id, right.answer.message_id)
            assert sorted(assistant.why(i).adapter is None for i in ids) == [False, True]
        orders.add(assistant.store.messages.get(left.message_id).adapter_id if n == 0 else left.answer.adapter)
        left.close()
        right.close()
    assert orders == {0, adapter.id}, "which comes first is drawn"
    assistant.prefer(None, ids)
    assert all(signals == [] for signals in assistant.signals(ids).values()), "a tie says nothing"
    assistant.prefer(ids[0], ids)
    signals = assistant.signals(ids)
    assert [(s.source, s.score) for i in ids for s in signals[i]] == [("thumb", 1), ("thumb", -1)]
    chat_id = assistant.store.messages.get(ids[0]).chat_id
    assert shown(assistant, chat_id)[-1] == ids[0], "the winner is shown"


def test_a_vote_between_replies_with_the_same_text_says_nothing_and_the_question_can_be_asked_again(
    assistant: Assistant, tmp_path: Path
) -> None:
    chat = assistant.new_chat()
    question = assistant.store.messages.add(chat.id, "user", "What is snow?", parent_id=None)
    one, two = (
        assistant.store.messages.add(chat.id, "assistant", text, parent_id=question) for text in ("Ice.", "Ice. ")
    )
    assert assistant.prefer(one, [one, two]) is False
    assert not any(assistant.signals([one, two]).values())
    assert shown(assistant, chat.id)[-1] == one
    file = write_lora(tmp_path / "adapter.gguf")
    adapter = assistant.store.adapters.add(
        parent_id=0, model_sha256=assistant.model_sha256, architecture="llama", gguf_path=str(file)
    )
    pair = assistant.compare_again(question, "base", adapter.id, sampling=Sampling(max_tokens=1))
    try:
        assert [reply.user_message_id for reply in pair] == [question] * 2
        assert assistant.versions(one) == [one, two, *(reply.message_id for reply in pair)]
        assert not any(assistant.signals([one, two]).values())
    finally:
        for reply in pair:
            reply.close()
    with pytest.raises(UsageError, match="not one of yours"):
        assistant.compare_again(one, "base", adapter.id)


def test_comparing_on_the_last_question_makes_versions_and_asks_nothing_twice(
    assistant: Assistant, tmp_path: Path
) -> None:
    chat = assistant.new_chat()
    question = assistant.store.messages.add(chat.id, "user", "What is snow?\nAnd ice?", parent_id=None)
    reply = assistant.store.messages.add(chat.id, "assistant", "Water.", parent_id=question)
    adapter = assistant.store.adapters.add(
        parent_id=0,
        model_sha256=assistant.model_sha256,
        architecture="llama",
        gguf_path=str(write_lora(tmp_path / "adapter.gguf")),
    )
    pair = assistant.compare("What is snow? And ice?", "base", adapter.id, chat=chat.id)
    try:
        assert [one.user_message_id for one in pair] == [question] * 2
        assert assistant.versions(reply) == [reply, *sorted(one.message_id for one in pair)]
    finally:
        for one in pair:
            one.close()
    assistant.show_version(reply)
    other = assistant.compare("And rain?", "base", adapter.id, chat=chat.id)
    try:
        assert assistant.store.messages.get(other[0].user_message_id).parent_id == reply
    finally:
        for one in other:
            one.close()


def test_a_comparison_that_makes_no_sense_is_refused(assistant: Assistant) -> None:
    with pytest.raises(UsageError, match="same adapter"):
        assistant.compare("What?", "base", "base")
    with pytest.raises(NotFoundError):
        assistant.compare("What?", 4711, "base")
    one, two = assistant.ask("One?", sampling=SHORT), assistant.ask("Two?", sampling=SHORT)
    with pytest.raises(UsageError, match="same question"):
        assistant.prefer(one.message_id, [one.message_id, two.message_id])
    again = assistant.regenerate(one.message_id, sampling=SHORT).answer
    with pytest.raises(UsageError, match="none of the replies"):
        assistant.prefer(two.message_id, [one.message_id, again.message_id])
