"""Ollama's own package, and plain HTTP as its documentation shows it, against a server with the embedded model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import ollama
import pytest

from .conftest import Served

MODEL = "claw-local"
QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
BRIEF = {"temperature": 0, "num_predict": 24}


def weather(city: str) -> str:
    """The weather of a city today.

    Args:
        city: which city

    Returns:
        what the weather is like
    """
    return f"21 degrees and sunny in {city}"


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[ollama.Client]:
    with ollama.Client(served.url) as client:
        yield client


def test_a_chat_is_answered_with_counts_and_times(client: ollama.Client) -> None:
    answer = client.chat(MODEL, QUESTION, options=BRIEF)
    assert answer.message.content is not None and "Paris" in answer.message.content
    assert answer.model == MODEL and answer.done and answer.done_reason in ("stop", "length")
    assert answer.prompt_eval_count and answer.eval_count and answer.eval_duration and answer.total_duration
    assert answer.total_duration >= answer.eval_duration


def test_a_stream_adds_up_to_the_same_answer(client: ollama.Client) -> None:
    whole = client.chat(MODEL, QUESTION, options=BRIEF)
    parts = list(client.chat(MODEL, QUESTION, options=BRIEF, stream=True))
    assert len(parts) > 2 and "".join(part.message.content or "" for part in parts) == whole.message.content
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count == whole.eval_count


async def test_the_asynchronous_client_streams_too(served: Served) -> None:
    async with ollama.AsyncClient(served.url) as client:
        parts = [part async for part in await client.chat(MODEL, QUESTION, options=BRIEF, stream=True)]
    assert parts[-1].done and "".join(part.message.content or "" for part in parts)


def test_the_same_seed_gives_the_same_answer(client: ollama.Client) -> None:
    options = {"temperature": 1.0, "seed": 7, "num_predict": 12}
    first, second = (client.generate(MODEL, "Tell me a story.", options=options).response for _ in range(2))
    assert first == second


def test_a_stop_text_ends_the_answer(client: ollama.Client) -> None:
    answer = client.chat(MODEL, QUESTION, options=BRIEF | {"stop": ["Paris"]})
    assert "Paris" not in (answer.message.content or "") and answer.done_reason == "stop"


def test_the_longest_answer_is_kept_to(client: ollama.Client) -> None:
    answer = client.generate(MODEL, "Tell me a long story.", options={"num_predict": 3})
    assert answer.done_reason == "length" and answer.eval_count == 3


def test_a_generated_answer_goes_on_from_its_context(client: ollama.Client) -> None:
    first = client.generate(MODEL, "My name is Ada. Say hello.", options=BRIEF)
    assert first.context
    second = client.generate(MODEL, "What is my name?", context=first.context, options=BRIEF)
    assert second.context is not None and second.response
    kept = first.context[: len(first.context) - 1]
    assert list(second.context[: len(kept)]) == list(kept)
    assert second.prompt_eval_count is not None and second.prompt_eval_count > len(kept)


def test_a_raw_prompt_is_gone_on_with_as_it_is(client: ollama.Client) -> None:
    answer = client.generate(MODEL, "One, two, three,", raw=True, options={"temperature": 0, "num_predict": 4})
    assert "four" in (answer.response or "") and answer.context is None
    templated = client.generate(MODEL, "One, two, three,", options={"num_predict": 1})
    assert (answer.prompt_eval_count or 0) < (templated.prompt_eval_count or 0)


def test_a_stream_of_a_prompt_has_its_own_fields(client: ollama.Client) -> None:
    parts = list(client.generate(MODEL, "Say hello.", system="Be brief.", options=BRIEF, stream=True))
    assert all(part.response is not None for part in parts) and parts[-1].context


def test_a_format_is_kept_to(client: ollama.Client) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}, "old": {"type": "boolean"}},
        "required": ["city", "old"],
    }
    shaped = client.chat(MODEL, QUESTION, format=schema, options=BRIEF | {"num_predict": 60})
    found = json.loads(shaped.message.content or "")
    assert found["city"] in ("Paris", "Rome") and isinstance(found["old"], bool)
    some = client.generate(MODEL, "Give me {} as JSON.", format="json", options=BRIEF | {"num_predict": 120})
    assert (some.response or "").lstrip().startswith("{")


def test_a_tool_is_called_and_its_result_is_answered(client: ollama.Client) -> None:
    asked: list[Any] = [
        {"role": "system", "content": "Answer every question by calling the tool weather."},
        {"role": "user", "content": "What is the weather in Rome?"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Rome"}}}]},
        {"role": "tool", "content": weather("Rome"), "tool_name": "weather"},
    ]
    answer = client.chat(MODEL, asked, tools=[weather], options=BRIEF)
    assert answer.message.content or answer.message.tool_calls
    parts = list(client.chat(MODEL, asked[:2], tools=[weather], options=BRIEF | {"num_predict": 60}, stream=True))
    calls = [call for part in parts for call in part.message.tool_calls or []]
    assert parts[-1].done and all(call.function.name == "weather" for call in calls)
    assert calls or "".join(part.message.content or "" for part in parts)


def test_logprobs_come_with_the_likeliest_beside_them(client: ollama.Client) -> None:
    answer = client.generate(MODEL, "Say hello.", options=BRIEF, logprobs=True, top_logprobs=2)
    assert answer.logprobs and all(entry.logprob <= 0 for entry in answer.logprobs)
    assert all(len(entry.top_logprobs or ()) == 2 for entry in answer.logprobs)


def test_models_are_listed_and_described(client: ollama.Client) -> None:
    listed = next(entry for entry in client.list().models if entry.model == MODEL)
    assert listed.size and len(listed.digest or "") == 64
    assert listed.details is not None and listed.details.quantization_level == "Q4_1"
    shown = client.show(f"{MODEL}:latest")
    assert shown.modelinfo is not None and shown.modelinfo["general.architecture"] == "llama"
    assert shown.template and "completion" in (shown.capabilities or [])
    assert MODEL in [entry.model for entry in client.ps().models]


def test_texts_are_embedded(client: ollama.Client) -> None:
    found = client.embed(MODEL, ["a cat", "a kitten", "tax law"]).embeddings
    assert len(found) == 3 and len({len(vector) for vector in found}) == 1
    assert sum(x * x for x in found[0]) == pytest.approx(1, abs=1e-3)
    one = client.embeddings(MODEL, "a cat").embedding
    assert list(one) == pytest.approx(list(found[0]), abs=1e-2)


def test_an_empty_request_only_loads(client: ollama.Client) -> None:
    assert client.generate(MODEL).done_reason == "load"
    assert client.chat(MODEL, []).done_reason == "load"
    assert client.chat(MODEL, [], keep_alive=0).done_reason == "unload"


def test_what_is_not_done_here_is_refused_in_a_sentence(client: ollama.Client) -> None:
    for refused in (
        lambda: client.push(MODEL),
        lambda: client.create("mine", from_=MODEL),
        lambda: client.copy(MODEL, "mine"),
        lambda: client.delete(MODEL),
    ):
        with pytest.raises(ollama.ResponseError) as caught:
            refused()
        assert caught.value.status_code == 501 and "claw-local" in caught.value.error


def test_a_model_that_is_here_needs_no_pulling(client: ollama.Client) -> None:
    assert client.pull(MODEL).status == "success"
    assert [part.status for part in client.pull(MODEL, stream=True)] == ["success"]
    with pytest.raises(ollama.ResponseError) as caught:
        client.pull("another")
    assert caught.value.status_code == 404 and "claw-local models pull" in caught.value.error


def test_errors_are_those_the_package_knows(client: ollama.Client, served: Served) -> None:
    with pytest.raises(ollama.ResponseError) as missing:
        client.chat("llama3", QUESTION)
    assert missing.value.status_code == 404 and "not found" in missing.value.error
    with pytest.raises(ollama.ResponseError) as streamed:
        list(client.chat("llama3", QUESTION, stream=True))
    assert streamed.value.status_code == 404
    with pytest.raises(ollama.ResponseError) as thinking:
        client.chat(MODEL, QUESTION, think=True)
    assert thinking.value.status_code == 400 and "does not support thinking" in thinking.value.error
    broken = httpx.post(f"{served.url}/api/chat", content=b'{"model":')
    assert broken.status_code == 400 and "JSON" in broken.json()["error"]
    unnamed = httpx.post(f"{served.url}/api/chat", json={"messages": QUESTION})
    assert unnamed.status_code == 400 and "model" in unnamed.json()["error"]


def test_a_body_counts_as_json_whatever_it_is_called(served: Served) -> None:
    """`curl -d` says that it is a form."""
    body = json.dumps({"model": MODEL, "messages": QUESTION, "options": BRIEF})
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = httpx.post(f"{served.url}/api/chat", content=body, headers=headers, timeout=60)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert json.loads(answer.text.splitlines()[-1])["done"] is True


def test_programs_find_a_server_of_ollamas_kind(served: Served) -> None:
    assert httpx.get(f"{served.url}/api/version").json()["version"].count(".") == 2
    assert httpx.head(f"{served.url}/").status_code == 200
