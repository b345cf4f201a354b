"""The loop through the product's own API, on the embedded model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.engine.base import Sampling
from claw_local.errors import ModelError, NotFoundError, UsageError
from claw_local.memory import fast
from claw_local.signals.turns import combine, pair

SHORT = Sampling(max_tokens=12, temperature=0.7, seed=3)


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory, model_path: Path) -> Iterator[Assistant]:
    with Assistant.open(tmp_path_factory.mktemp("home"), model=model_path) as opened:
        yield opened


def test_a_turn_is_stored_before_it_is_answered_and_finished_after(assistant: Assistant) -> None:
    reply = assistant.stream("What is rain?", sampling=SHORT)
    question = assistant.store.messages.get(reply.user_message_id)
    assert (question.content, question.state) == ("What is rain?", "done")
    assert assistant.store.messages.get(reply.message_id).state == "streaming"
    pieces = list(reply)
    answer = reply.answer
    stored = assistant.store.messages.get(reply.message_id)
    assert "".join(pieces) == answer.text == stored.content
    assert stored.state == "done"
    assert len(stored.response_ids) == len(stored.logprobs) == answer.completion_tokens == 12
    assert stored.model_sha256 == assistant.model_sha256
    assert answer.finish_reason == "length"


def test_the_second_turn_evaluates_only_what_is_new(assistant: Assistant) -> None:
    first = assistant.ask("Name one colour of the rainbow, please, and say why you like it.", sampling=SHORT)
    second = assistant.ask("Another.", chat=first.chat_id, sampling=SHORT)
    assert second.evaluated_tokens < 20 < second.prompt_tokens
    stored = assistant.store.messages.get(first.message_id)
    again = assistant.store.messages.get(second.message_id)
    assert again.prompt_ids[: len(stored.prompt_ids)] == stored.prompt_ids
    start = len(stored.prompt_ids)
    assert again.prompt_ids[start : start + 12] == stored.response_ids, "the model's own tokens, not its text again"


def test_the_same_seed_gives_the_same_answer(assistant: Assistant) -> None:
    answers = {assistant.ask("Tell me about the sea.", sampling=SHORT).text for _ in range(3)}
    assert len(answers) == 1


def test_what_is_wished_after_a_stopped_reply_is_a_wish_and_no_lesson(tmp_path: Path, model_path: Path) -> None:
    with Assistant.open(tmp_path, model=model_path) as assistant:
        assistant.learn.on()
        reply = assistant.stream("Tell me about the history of tea.", sampling=Sampling(max_tokens=200, seed=1))
        shown = [next(iter(reply)) for _ in range(3)]
        reply.cancel()
        shown += list(reply)
        stopped = assistant.store.messages.get(reply.message_id)
        assert stopped.state == "interrupted" and stopped.content
        assistant.ask("Way too long. Please answer in one short sentence.", chat=stopped.chat_id, sampling=SHORT)
        assistant.wait_judged()
        assert [hint.message_id for hint in assistant.hints.list()] == [stopped.id]
        assert all(turn.reply.id != stopped.id for turn in pair(assistant.store)), "half a reply teaches nothing"


def test_a_cancelled_reply_keeps_what_was_shown(assistant: Assistant) -> None:
    reply = assistant.stream("Tell me a long story.", sampling=Sampling(max_tokens=200, seed=1))
    shown = [next(iter(reply))]
    reply.cancel()
    shown += list(reply)
    stored = assistant.store.messages.get(reply.message_id)
    assert (stored.state, stored.content) == ("interrupted", "".join(shown))
    assert len(stored.response_ids) < 10


def test_a_reply_given_up_halfway_is_marked_and_the_next_one_works(assistant: Assistant) -> None:
    reply = assistant.stream("Tell me a long story.", sampling=Sampling(max_tokens=200, seed=1))
    first = next(iter(reply))
    reply.close()
    stored = assistant.store.messages.get(reply.message_id)
    assert (stored.state, stored.content) == ("interrupted", first)
    assert assistant.ask("Hello", sampling=SHORT).text


def test_hints_stand_in_the_prompt_and_can_be_left_out(assistant: Assistant) -> None:
    hint = assistant.hints.add("Please answer in one short sentence.")
    try:
        told = assistant.ask("What is snow?", sampling=SHORT)
        untold = assistant.ask("What is snow?", sampling=SHORT, memory=False)
    finally:
        assistant.hints.drop(hint.id)
    assert told.hints == ("Please answer in one short sentence.",)
    assert untold.hints == ()
    assert told.prompt_tokens > untold.prompt_tokens
    assert assistant.store.messages.get(told.message_id).hint_ids == (hint.id,)
    assert assistant.ask("What is snow?", sampling=SHORT).hints == ()


def test_nothing_is_judged_while_learning_is_off(assistant: Assistant) -> None:
    assert not assistant.learn.enabled
    first = assistant.ask("What is hail?", sampling=SHORT)
    assistant.ask("Too long, please be brief.", chat=first.chat_id, sampling=SHORT)
    assert assistant.wait_judged()
    assert assistant.signals([first.message_id]) == {first.message_id: []}
    assert not assistant.store.messages.get(first.message_id).learn


def test_with_learning_on_the_next_message_is_judged_and_its_hint_works_at_once(assistant: Assistant) -> None:
    assistant.learn.on()
    try:
        heard = []
        assistant.on_judged(heard.append)
        first = assistant.ask("What are clouds made of?", sampling=SHORT)
        assistant.ask("No bullet points please, just plain sentences.", chat=first.chat_id, sampling=SHORT)
        assert assistant.wait_judged()
        (signal,) = assistant.signals([first.message_id])[first.message_id]
        assert (signal.source, signal.score) == ("judge", -1)
        assert signal in heard
        assert signal.probabilities and signal.judge_version
        (hint,) = assistant.hints.list()
        assert "bullet points" in hint.text
        assert assistant.ask("What is fog?", sampling=SHORT).hints == (hint.text,)
        assert assistant.learn.status().lessons == 1
        private = assistant.ask("What is dew?", sampling=SHORT, learn=False)
        assistant.ask("That is wrong.", chat=private.chat_id, sampling=SHORT)
        assert assistant.wait_judged()
        assert assistant.signals([private.message_id])[private.message_id] == []
    finally:
        assistant.learn.off()
        for hint in assistant.hints.list():
            assistant.hints.drop(hint.id)


def test_feedback_goes_before_the_judge_and_an_edit_becomes_a_branch(assistant: Assistant) -> None:
    answer = assistant.ask("What is ice?", sampling=SHORT)
    assert assistant.feedback(answer.message_id, "good").score == 1
    edited = assistant.feedback(answer.message_id, edit="Ice is frozen water.")
    assert (edited.source, edited.score) == ("edit", -1)
    assert [message.content for message in assistant.messages(answer.chat_id)] == [
        "What is ice?",
        "Ice is frozen water.",
    ]
    with pytest.raises(UsageError, match="good or bad"):
        assistant.feedback(answer.message_id)
    with pytest.raises(UsageError, match="not a reply"):
        assistant.feedback(assistant.messages(answer.chat_id)[0].id, "good")


def test_asking_again_makes_a_branch_and_scores_the_earlier_reply(assistant: Assistant) -> None:
    assistant.learn.on()
    answer = assistant.ask("What is steam?", sampling=SHORT)
    again = assistant.regenerate(answer.message_id, sampling=Sampling(max_tokens=12, seed=99)).answer
    assert [message.id for message in assistant.messages(answer.chat_id)][-1] == again.message_id
    (signal,) = assistant.signals([answer.message_id])[answer.message_id]
    assert (signal.source, signal.score) == ("regenerate", -1)
    before = assistant.learn.status().lessons
    assistant.feedback(again.message_id, "good")
    assert assistant.learn.status().lessons == before + 1, "a thumb is a lesson; that one asked again is none by itself"
    assistant.feedback(answer.message_id, "good")
    assert combine(assistant.signals([answer.message_id])[answer.message_id])[0] == 1, "a thumb says otherwise"
    assistant.learn.off()


@pytest.mark.parametrize("off", ["everywhere", "in the chat", "for the question"])
def test_asking_again_leaves_no_mark_where_nothing_may_teach(assistant: Assistant, off: str) -> None:
    if off == "everywhere":
        assistant.learn.off()
    else:
        assistant.learn.on()
    answer = assistant.ask("What is fog?", sampling=SHORT, learn=False if off == "for the question" else None)
    if off == "in the chat":
        assistant.set_chat(answer.chat_id, learn=False)
    _ = assistant.regenerate(answer.message_id, sampling=SHORT).answer
    assert assistant.signals([answer.message_id])[answer.message_id] == []
    assistant.learn.off()


def test_asking_again_after_learning_was_switched_off_marks_nothing(assistant: Assistant) -> None:
    assistant.learn.on()
    answer = assistant.ask("What is dew?", sampling=SHORT)
    assistant.learn.off()
    _ = assistant.regenerate(answer.message_id, sampling=SHORT).answer
    assert assistant.signals([answer.message_id])[answer.message_id] == []


def test_a_chat_longer_than_the_context_loses_its_oldest_turns_and_says_so(tmp_path: Path, model_path: Path) -> None:
    from claw_local.settings import ModelSettings, Settings

    with Assistant.open(tmp_path, model=model_path, settings=Settings(model=ModelSettings(context=512))) as small:
        chat = small.new_chat()
        head = None
        for n in range(12):
            head = small.store.messages.add(chat.id, "user", f"Number {n}: " + "wind " * 40, parent_id=head)
            head = small.store.messages.add(chat.id, "assistant", "Noted.", parent_id=head)
        answer = small.ask("And now?", chat=chat.id, sampling=SHORT)
        assert any("oldest" in notice for notice in answer.notices)
        assert answer.prompt_tokens < 512
        assert len(small.messages(chat.id)) == 26, "they are left out of the prompt, not of the chat"


def test_wrong_use_is_said_and_stores_nothing(assistant: Assistant) -> None:
    before = len(assistant.chats())
    with pytest.raises(UsageError):
        assistant.stream("  \n")
    with pytest.raises(NotFoundError):
        assistant.stream("hi", chat=12345)
    with pytest.raises(NotFoundError):
        assistant.stream("hi", adapter=12345)
    assert len(assistant.chats()) == before


def test_a_question_is_kept_when_the_model_cannot_be_loaded(tmp_path: Path) -> None:
    with Assistant.open(tmp_path, model=tmp_path / "missing.gguf") as broken:
        reply = broken.stream("Are you there?")
        with pytest.raises(ModelError, match=r"missing\.gguf"):
            list(reply)
        question, answer = broken.messages(reply.chat_id)
        assert question.content == "Are you there?"
        assert answer.state == "failed"


def test_an_unanswered_question_stays_out_of_later_prompts(tmp_path: Path, model_path: Path) -> None:
    with Assistant.open(tmp_path, model=tmp_path / "missing.gguf") as broken:
        reply = broken.stream("Purple elephants?")
        with pytest.raises(ModelError):
            list(reply)
    with Assistant.open(tmp_path, model=model_path) as mended:
        answer = mended.ask("What is tea?", chat=reply.chat_id, sampling=SHORT)
        engine = mended._loaded_engine()
        prompt = engine.detokenize(mended.store.messages.get(answer.message_id).prompt_ids)
        assert "What is tea?" in prompt
        assert "elephants" not in prompt


def test_the_budget_bounds_what_hints_may_take(assistant: Assistant) -> None:
    store = assistant.store
    hints = [store.hints.add(f"Wish number {n} about colour {n}.") for n in range(5)]
    try:
        chosen = fast.choose(store, chat_id=None, budget_tokens=20, count=lambda text: len(text.split()))
        assert [hint.id for hint in chosen] == [hint.id for hint in hints[-2:]], "the newest, oldest first"
    finally:
        for hint in hints:
            store.hints.set_state(hint.id, "dropped")


def test_a_correction_said_once_learning_is_on_counts_for_a_reply_from_before(assistant: Assistant) -> None:
    before = assistant.ask("What is rain?", sampling=SHORT)
    never = assistant.ask("What is snow?", sampling=SHORT, learn=False)
    assistant.learn.on()
    for answer in (before, never):
        assistant.ask("Please don't use lists.", chat=answer.chat_id, sampling=SHORT)
    assert assistant.wait_judged()
    judged = assistant.signals([before.message_id, never.message_id])
    assert [signal.score for signal in judged[before.message_id]] == [-1]
    assert judged[never.message_id] == []
    assert [hint.text for hint in assistant.hints.list()] == ["Please don't use lists."]
