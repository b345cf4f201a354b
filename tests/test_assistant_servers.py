"""Chats that a model behind a server answers, and chats with models of their own.

Ollama cannot be had here: a small server plays its documented API. The judge is the embedded model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.engine.base import Sampling, has_tokens
from claw_local.errors import AdapterError, EngineError, ModelError
from claw_local.settings import ModelSettings, OllamaSettings, Settings
from claw_local.signals import turns
from tests.engine.servers import OLLAMA, Script, serving

SHORT = Sampling(max_tokens=6, seed=3)


@pytest.fixture
def served() -> Iterator[tuple[Settings, Script]]:
    with serving(OLLAMA) as (url, script):
        yield Settings(model=ModelSettings(context=1024, threads=1), ollama=OllamaSettings(url=url)), script


def test_a_chat_streams_from_ollama_and_is_kept_piece_by_piece(tmp_path: Path, served: tuple[Settings, Script]) -> None:
    with Assistant.open(tmp_path, model="ollama:llama3.2", settings=served[0]) as assistant:
        reply = assistant.stream("What is tea?")
        assert next(iter(reply)) == "Tea "
        pieces = [row["text"] for row in assistant.store.database.db.query("select text from pieces")]
        assert pieces == ["Tea "], "what was shown is on disk before the next piece comes"
        answer = reply.answer
        stored = assistant.store.messages.get(reply.message_id)
        assert answer.text == stored.content == "Tea is a drink."
        assert (answer.model, stored.model, stored.model_sha256) == ("ollama:llama3.2", "ollama:llama3.2", "")
        assert (answer.prompt_tokens, answer.completion_tokens) == (21, 4)
        why = assistant.why(reply.message_id)
        assert (why.prompt_tokens, why.completion_tokens, why.adapter) == (21, 4, None)
        assert set(why.timings) == {"load", "first_token", "total"}


def test_the_whole_chat_and_the_hints_reach_the_server(tmp_path: Path, served: tuple[Settings, Script]) -> None:
    settings, script = served
    with Assistant.open(tmp_path, model="ollama:llama3.2", settings=settings) as assistant:
        assistant.hints.add("Answer in one sentence.")
        first = assistant.ask("What is tea?", system="Be kind.")
        assistant.ask("And coffee?", chat=first.chat_id, sampling={"temperature": 0.1})
        body = script.last("/api/chat")
        assert [(m["role"], m["content"]) for m in body["messages"]] == [
            ("system", "Be kind."),
            ("user", "What is tea?"),
            ("assistant", "Tea is a drink."),
            ("user", "And coffee?\n\nAnswer in one sentence."),
        ]
        assert body["options"]["temperature"] == 0.1


def test_its_replies_are_judged_for_hints_by_the_embedded_model_and_never_trained_on(
    tmp_path: Path, served: tuple[Settings, Script]
) -> None:
    with Assistant.open(tmp_path, model="ollama:llama3.2", settings=served[0]) as assistant:
        assistant.learn.on()
        first = assistant.ask("What are clouds?")
        assistant.ask("No bullet points please, just plain sentences.", chat=first.chat_id)
        assert assistant.wait_judged(60)
        (signal,) = assistant.signals([first.message_id])[first.message_id]
        assert (signal.source, signal.score) == ("judge", -1)
        assert "bullet points" in assistant.hints.list()[0].text
        assert assistant.ask("What is fog?").hints, "and fast memory works there too"
        assert turns.pair(assistant.store) == []
        assert assistant.learn.status().lessons == 0
        with pytest.raises(ModelError, match="only a model file on this machine can learn"):
            assistant.learn.now()


def test_without_a_model_file_the_judge_waits(
    tmp_path: Path, served: tuple[Settings, Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claw_local.engine.models.embedded_model", lambda: None)
    with Assistant.open(tmp_path, model="ollama:llama3.2", settings=served[0]) as assistant:
        assistant.learn.on()
        first = assistant.ask("What are clouds?")
        assistant.ask("No lists please.", chat=first.chat_id)
        assert assistant.wait_judged(10)
        assert assistant.signals([first.message_id])[first.message_id] == []
        assert assistant.learn.status().waiting == 1, "it is judged once there is a model that can"


def test_a_stopped_reply_keeps_what_came_and_leaves_the_server(tmp_path: Path, served: tuple[Settings, Script]) -> None:
    settings, script = served
    script.pieces, script.pause_s = ["word "] * 100, 0.05
    with Assistant.open(tmp_path, model="ollama:llama3.2", settings=settings) as assistant:
        reply = assistant.stream("Go on")
        next(iter(reply))
        reply.cancel()
        answer = reply.answer
        stored = assistant.store.messages.get(reply.message_id)
        assert (stored.state, stored.content) == ("interrupted", answer.text)
        assert answer.finish_reason == "cancelled" and answer.text.count("word") < 10
        assert script.left.wait(2)


def test_a_server_that_is_gone_fails_the_reply_and_keeps_the_question(tmp_path: Path) -> None:
    settings = Settings(ollama=OllamaSettings(url="http://127.0.0.1:9"))
    with Assistant.open(tmp_path, model="ollama:llama3.2", settings=settings) as assistant:
        reply = assistant.stream("Are you there?")
        with pytest.raises(EngineError, match="ollama serve"):
            list(reply)
        question, answer = assistant.messages(reply.chat_id)
        assert (question.content, answer.state) == ("Are you there?", "failed")


def test_adapters_belong_to_model_files(tmp_path: Path, served: tuple[Settings, Script]) -> None:
    with Assistant.open(tmp_path, model="ollama:llama3.2", settings=served[0]) as assistant:
        record = assistant.store.adapters.add(parent_id=0, model_sha256="m", architecture="llama", gguf_path="x")
        assert assistant.adapters.active() is None
        with pytest.raises(AdapterError, match="another model"):
            list(assistant.stream("Hello", adapter=record.id))


def test_a_chat_changes_between_a_model_file_and_a_server(
    tmp_path: Path, served: tuple[Settings, Script], model_path: Path
) -> None:
    settings, script = served
    with Assistant.open(tmp_path, model=model_path, settings=settings) as assistant:
        here = assistant.ask("What is rain?", sampling=SHORT)
        there = assistant.ask("And tea?", chat=here.chat_id, model="ollama:llama3.2")
        assert there.model == "ollama:llama3.2" and assistant.chat(here.chat_id).model == "", "for this once"
        assert script.last("/api/chat")["messages"][1] == {"role": "assistant", "content": here.text}
        back = assistant.ask("And snow?", chat=here.chat_id, sampling=SHORT)
        assert back.model == here.model
        with assistant._engines.using(assistant._source("")) as engine:
            assert has_tokens(engine)
            prompt = engine.detokenize(assistant.store.messages.get(back.message_id).prompt_ids)
        assert here.text in prompt and "Tea is a drink." in prompt


def test_the_tokens_of_another_model_file_go_in_as_text(tmp_path: Path, model_path: Path) -> None:
    with Assistant.open(tmp_path, model=model_path, settings=Settings(model=ModelSettings(threads=1))) as assistant:
        chat = assistant.new_chat()
        question = assistant.store.messages.add(chat.id, "user", "What is tea?", parent_id=None)
        assistant.store.messages.add(
            chat.id,
            "assistant",
            "A drink made of leaves.",
            parent_id=question,
            response_ids=[11, 12, 13],
            model_sha256="of another model",
        )
        answer = assistant.ask("And coffee?", chat=chat.id, sampling=SHORT)
        with assistant._engines.using(assistant._source("")) as engine:
            assert has_tokens(engine)
            prompt = engine.detokenize(assistant.store.messages.get(answer.message_id).prompt_ids)
        assert "A drink made of leaves." in prompt


def test_a_chat_with_a_file_of_its_own_is_answered_by_it_and_few_stay_open(tmp_path: Path, model_path: Path) -> None:
    models = [tmp_path / f"{name}.gguf" for name in ("one", "two", "three")]
    for path in models:
        os.link(model_path, path)
    settings = Settings(model=ModelSettings(context=512, threads=1, keep_open=2))
    with Assistant.open(tmp_path / "home", model=models[0], settings=settings) as assistant:
        answers = []
        for path in models:
            chat = assistant.set_chat(assistant.new_chat().id, model=str(path))
            answers.append(assistant.ask("Hello", chat=chat.id, sampling=SHORT))
        assert [answer.model for answer in answers] == ["one", "two", "three"]
        assert [source.path for source in assistant._engines.opened()] == [models[2], models[1]]
        assert not assistant.loaded
        assert assistant.ask("Hello", sampling=SHORT).model == "one", "and is loaded again when it is wanted"
