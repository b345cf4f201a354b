"""Several chats answered at once through `Assistant`: each kept whole, each with the adapter it was asked of."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local import Assistant
from claw_local.engine.base import Sampling
from claw_local.reply import Answer
from claw_local.settings import ModelSettings, Settings
from tests.adapters.loras import ALL, lora, register

SETTINGS = Settings(model=ModelSettings(context=512, threads=1, together=4))
GREEDY = Sampling(max_tokens=12, temperature=0.0, repeat_penalty=1.0)
QUESTIONS = (
    "How do I boil an egg?",
    "Name three colours.",
    "Who wrote Hamlet?",
    "Tell me a joke.",
    "Why is snow white?",
)


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory, model_path: Path) -> Iterator[Assistant]:
    with Assistant.open(tmp_path_factory.mktemp("home"), model=model_path, settings=SETTINGS) as opened:
        opened.load()
        yield opened


def test_five_threads_ask_at_once_and_every_reply_is_kept_as_it_was_written(assistant: Assistant) -> None:
    register(assistant, lora(blocks=30, modules=ALL, size=0.004), name="work")
    answers: dict[int, Answer] = {}

    def ask(number: int) -> None:
        adapter = "work" if number % 2 else "base"
        answers[number] = assistant.ask(QUESTIONS[number], sampling=GREEDY, adapter=adapter, learn=False)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(QUESTIONS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(answers) == list(range(len(QUESTIONS)))
    for number, answer in answers.items():
        kept = assistant.store.messages.get(answer.message_id)
        assert (kept.content, kept.state) == (answer.text, "done")
        assert bool(answer.adapter) == bool(number % 2)
        assert kept.adapter_id == answer.adapter
        assert answer.text
    assert len({answer.chat_id for answer in answers.values()}) == len(QUESTIONS)
    again = assistant.ask(QUESTIONS[1], sampling=GREEDY, adapter="base", learn=False)
    assert again.text != answers[1].text, "so it would show if a reply had been written under the other adapter"


def test_a_reply_that_is_given_up_is_kept_as_far_as_it_came_and_frees_its_place(assistant: Assistant) -> None:
    reply = assistant.stream("Tell me a long story.", sampling=Sampling(max_tokens=300, temperature=3.0), learn=False)
    shown = next(iter(reply))
    reply.close()
    kept = assistant.store.messages.get(reply.message_id)
    assert kept.state == "interrupted"
    assert kept.content.startswith(shown)
    assert assistant.ask(QUESTIONS[0], sampling=GREEDY, learn=False).text
