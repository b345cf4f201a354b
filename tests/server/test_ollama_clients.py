"""Ollama's own package, and plain HTTP as its documentation shows it, against a server with the embedded model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import ollama
import pytest

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
def client(server_url: str) -> Iterator[ollama.Client]:
    with ollama.Client(server_url) as client:
        yield client


@pytest.fixture(scope="module")
def model(model_name: str) -> str:
    return model_name


def test_a_chat_is_answered_with_counts_and_times(client: ollama.Client, model: str) -> None:
    answer = client.chat(model, QUESTION, options=BRIEF)
    assert answer.message.content is not None and "Paris" in answer.message.content
    assert answer.model == model and answer.done and answer.done_reason in ("stop", "length")
    assert answer.prompt_eval_count and answer.eval_count and answer.eval_duration and answer.total_duration
    assert answer.total_duration >= answer.eval_duration


def test_a_stream_adds_up_to_the_same_answer(client: ollama.Client, model: str) -> None:
    whole = client.chat(model, QUESTION, options=BRIEF)
    parts = list(client.chat(model, QUESTION, options=BRIEF, stream=True))
    assert len(parts) > 2 and "".join(part.message.content or "" for part in parts) == whole.message.content
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count == whole.eval_count


async def test_the_asynchronous_client_streams_too(server_url: str, model: str) -> None:
    async with ollama.AsyncClient(server_url) as client:
        parts = [part async for part in await client.chat(model, QUESTION, options=BRIEF, stream=True)]
    assert parts[-1].done and "".join(part.message.content or "" for part in parts)


def test_the_same_seed_gives_the_same_answer(client: ollama.Client, model: str) -> None:
    options = {"temperature": 1.0, "seed": 7, "num_predict": 12}
    first, second = (client.generate(model, "Tell me a story.", options=options).response for _ in range(2))
    assert first == second


def test_a_stop_text_ends_the_answer(client: ollama.Client, model: str) -> None:
    answer = client.chat(model, QUESTION, options=BRIEF | {"stop": ["Paris"]})
    assert "Paris" not in (answer.message.content or "") and answer.done_reason == "stop"


def test_the_longest_answer_is_kept_to(client: ollama.Client, model: str) -> None:
    answer = client.generate(model, "Tell me a long story.", options={"num_predict": 3})
    assert answer.done_reason == "length" and answer.eval_count == 3


def test_a_generated_answer_goes_on_from_its_context(client: ollama.Client, model: str) -> None:
    first = client.generate(model, "My name is Ada. Say hello.", options=BRIEF)
    assert first.context
    second = client.generate(model, "What is my name?", context=first.context, options=BRIEF)
    assert second.context is not None and second.response
    kept = first.context[: len(first.context) - 1]
    assert list(second.context[: len(kept)]) == list(kept)
    assert second.prompt_eval_count is not None and second.prompt_eval_count > len(kept)


def test_a_raw_prompt_is_gone_on_with_as_it_is(client: ollama.Client, model: str) -> None:
    answer = client.generate(model, "One, two, three,", raw=True, options={"temperature": 0, "num_predict": 4})
    assert "four" in (answer.response or "") and answer.context is None
    templated = client.generate(model, "One, two, three,", options={"num_predict": 1})
    assert (answer.prompt_eval_count or 0) < (templated.prompt_eval_count or 0)


def test_a_stream_of_a_prompt_has_its_own_fields(client: ollama.Client, model: str) -> None:
    parts = list(client.generate(model, "Say hello.", system="Be brief.", options=BRIEF, stream=True))
    assert all(part.response is not None for part in parts) and parts[-1].context


def test_a_format_is_kept_to(client: ollama.Client, model: str) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}, "old": {"type": "boolean"}},
        "required": ["city", "old"],
    }
    shaped = client.chat(model, QUESTION, format=schema, options=BRIEF | {"num_predict": 60})
    found = json.loads(shaped.message.content or "")
    assert found["city"] in ("Paris", "Rome") and isinstance(found["old"], bool)
    some = client.generate(model, "Give me {} as JSON.", format="json", options=BRIEF | {"num_predict": 120})
    assert (some.response or "").lstrip().startswith("{")


def test_a_tool_is_called_and_its_result_is_answered(client: ollama.Client, model: str) -> None:
    asked: list[Any] = [
        {"role": "system", "content": "Answer every question by calling the tool weather."},
        {"role": "user", "content": "What is the weather in Rome?"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Rome"}}}]},
        {"role": "tool", "content": weather("Rome"), "tool_name": "weather"},
    ]
    answer = client.chat(model, asked, tools=[weather], options=BRIEF)
    assert answer.message.content or answer.message.tool_calls
    parts = list(client.chat(model, asked[:2], tools=[weather], options=BRIEF | {"num_predict": 60}, stream=True))
    calls = [call for part in parts for call in part.message.tool_calls or []]
    assert parts[-1].done and all(call.function.name == "weather" for call in calls)
    assert calls or "".join(part.message.content or "" for part in parts)


def test_logprobs_come_with_the_likeliest_beside_them(client: ollama.Client, model: str) -> None:
    answer = client.generate(model, "Say hello.", options=BRIEF, logprobs=True, top_logprobs=2)
    assert answer.logprobs and all(entry.logprob <= 0 for entry in answer.logprobs)
    assert all(len(entry.top_logprobs or ()) == 2 for entry in answer.logprobs)


def test_models_are_listed_and_described(client: ollama.Client, model: str) -> None:
    listed = next(entry for entry in client.list().models if entry.model == model)
    assert listed.size and len(listed.digest or "") == 64
    assert listed.details is not None and listed.details.quantization_level == "Q4_1"
    shown = client.show(f"{model}:latest")
    assert shown.modelinfo is not None and shown.modelinfo["general.architecture"] == "llama"
    assert shown.template and "completion" in (shown.capabilities or [])
    assert model in [entry.model for entry in client.ps().models]


def test_texts_are_embedded(client: ollama.Client, model: str) -> None:
    found = client.embed(model, ["a cat", "a kitten", "tax law"]).embeddings
    assert len(found) == 3 and len({len(vector) for vector in found}) == 1
    assert sum(x * x for x in found[0]) == pytest.approx(1, abs=1e-3)
    one = client.embeddings(model, "a cat").embedding
    assert list(one) == pytest.approx(list(found[0]), abs=1e-4)


def test_an_empty_request_only_loads(client: ollama.Client, model: str) -> None:
    assert client.generate(model).done_reason == "load"
    assert client.chat(model, []).done_reason == "load"
    assert client.chat(model, [], keep_alive=0).done_reason == "unload"


def test_what_is_not_done_here_is_refused_in_a_sentence(client: ollama.Client, model: str) -> None:
    for refused in (
        lambda: client.pull("another"),
        lambda: list(client.pull("another", stream=True)),
        lambda: client.push(model),
        lambda: client.create("mine", from_=model),
        lambda: client.copy(model, "mine"),
        lambda: client.delete(model),
    ):
        with pytest.raises(ollama.ResponseError) as caught:
            refused()
        assert caught.value.status_code == 501 and "claw-local" in caught.value.error
    assert client.pull(model).status == "success"


def test_errors_are_those_the_package_knows(client: ollama.Client, model: str, server_url: str) -> None:
    with pytest.raises(ollama.ResponseError) as missing:
        client.chat("llama3", QUESTION)
    assert missing.value.status_code == 404 and "not found" in missing.value.error
    with pytest.raises(ollama.ResponseError) as streamed:
        list(client.chat("llama3", QUESTION, stream=True))
    assert streamed.value.status_code == 404
    with pytest.raises(ollama.ResponseError) as thinking:
        client.chat(model, QUESTION, think=True)
    assert thinking.value.status_code == 400 and "does not support thinking" in thinking.value.error
    broken = httpx.post(f"{server_url}/api/chat", content=b'{"model":')
    assert broken.status_code == 400 and set(broken.json()) == {"error"}
    unnamed = httpx.post(f"{server_url}/api/chat", json={"messages": QUESTION})
    assert unnamed.status_code == 400 and "model" in unnamed.json()["error"]


def test_a_body_counts_as_json_whatever_it_is_called(server_url: str, model: str) -> None:
    """`curl -d` says that it is a form."""
    body = json.dumps({"model": model, "messages": QUESTION, "options": BRIEF})
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = httpx.post(f"{server_url}/api/chat", content=body, headers=headers, timeout=60)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert json.loads(answer.text.splitlines()[-1])["done"] is True


def test_programs_find_a_server_of_ollamas_kind(server_url: str) -> None:
    assert httpx.get(f"{server_url}/api/version").json()["version"].count(".") == 2
    assert httpx.head(f"{server_url}/").status_code == 200
