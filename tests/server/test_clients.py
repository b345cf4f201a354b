"""Clients that go away, clients beside each other, and a new adapter while answers are being written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from claw_local.assistant import Assistant
from tests.adapters.loras import ALL, lora, register

from .conftest import Served, serving, small

LONG: Any = {
    "messages": [{"role": "user", "content": "Write numbers."}],
    "response_format": {
        "type": "json_schema",
        "json_schema": {"schema": {"type": "array", "items": {"type": "integer"}, "minItems": 300}},
    },
    "max_tokens": 900,
    "temperature": 0,
}
"""Keeps the model busy for long, whatever it would rather say."""
SHORT: Any = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
SOON_S = 5.0


def timed(served: Served) -> float:
    began = time.perf_counter()
    assert httpx2.post(f"{served.url}/v1/chat/completions", json=SHORT, timeout=60).status_code == 200
    return time.perf_counter() - began


def test_who_stops_reading_a_stream_frees_the_place(served: Served) -> None:
    with httpx2.stream(
        "POST", f"{served.url}/v1/chat/completions", json={**LONG, "stream": True}, timeout=60
    ) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        assert next(lines).startswith("data: ")
    assert timed(served) < SOON_S


def test_who_goes_away_before_a_whole_answer_frees_the_place(served: Served) -> None:
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(f"{served.url}/v1/chat/completions", json=LONG, timeout=0.5)
    assert timed(served) < SOON_S


def test_who_goes_away_before_a_streams_first_word_leaves_the_line(served: Served) -> None:
    began: list[str] = []
    writing = served.assistant.serving.write

    def counted(*args: Any) -> Any:
        began.append(args[4])
        return writing(*args)

    served.assistant.serving.write = counted
    try:
        url, streamed = f"{served.url}/v1/chat/completions", {**LONG, "stream": True}
        with httpx2.stream("POST", url, json=streamed, timeout=60) as one:
            lines = one.iter_lines()
            next(lines)
            for _ in range(3):
                with pytest.raises(httpx2.ReadTimeout):
                    httpx2.post(url, json=streamed, timeout=0.3)
        timed(served)
    finally:
        served.assistant.serving.write = writing
    assert len(began) == 2, "those who left while they waited were answered, and nobody read it"


def test_several_clients_are_all_answered_and_a_short_question_need_not_wait_for_all(served: Served) -> None:
    def ask(number: int) -> str:
        with openai.OpenAI(base_url=f"{served.url}/v1", api_key=f"key {number}", max_retries=0) as client:
            answer = client.chat.completions.create(
                model="", messages=[{"role": "user", "content": f"Say the number {number}."}], max_tokens=6
            )
            return answer.choices[0].message.content or ""

    alone = [ask(number) for number in range(3)]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(ask, range(3))) == alone


def test_one_client_that_fills_the_batch_makes_way_for_the_next(tmp_path: Path, model_path: Path) -> None:
    settings = small()
    settings.model.together = 2
    with Assistant.open(tmp_path, model=model_path, settings=settings) as assistant, ExitStack() as stack:
        assistant.load()
        served = stack.enter_context(serving(assistant))
        held = []
        for _ in range(2):
            url, long = f"{served.url}/v1/chat/completions", {**LONG, "stream": True}
            answer = stack.enter_context(httpx2.stream("POST", url, json=long, timeout=60))
            held.append(answer.iter_lines())
            next(held[-1])
        began = time.perf_counter()
        answered = httpx2.post(url, json=SHORT, headers={"user-agent": "another"}, timeout=60)
        assert answered.status_code == 200 and time.perf_counter() - began < SOON_S


@pytest.fixture
def adapted(tmp_path: Path, model_path: Path) -> Iterator[Assistant]:
    with Assistant.open(tmp_path, model=model_path, settings=small()) as opened:
        register(opened, lora(blocks=30, modules=ALL, size=0.004), name="work")
        yield opened


def test_a_new_adapter_cuts_no_answer_and_is_there_for_the_next(adapted: Assistant) -> None:
    with serving(adapted) as served, openai.OpenAI(base_url=f"{served.url}/v1", api_key="x", max_retries=0) as client:

        def request(model: str) -> Any:
            question: Any = [{"role": "user", "content": "Tell me a story about a river."}]
            return {"model": model, "messages": question, "max_tokens": 30}

        def ask(model: str) -> str:
            return client.chat.completions.create(**request(model)).choices[0].message.content or ""

        names = [model.id for model in client.models.list()]
        assert names[0] == "claw-local" and "work" in names
        by_base, by_adapter = ask(names[1]), ask("work")
        assert by_base != by_adapter, "so it would show if an answer changed sides"
        assert ask("claw-local") == by_base
        shown = ""
        for place, chunk in enumerate(client.chat.completions.create(**request("claw-local"), stream=True)):
            if place == 3:
                adapted.adapters.use("work")
            shown += chunk.choices[0].delta.content or ""
        assert shown == by_base
        assert ask("claw-local") == by_adapter and ask(names[1]) == by_base
