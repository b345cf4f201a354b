"""OpenAI's API with OpenAI's own package, against a real server and the embedded model."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import chain
from typing import Any

import openai
import pytest

from .conftest import Served

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
ASKED: Any = [{"role": "user", "content": "Name a fruit."}]


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="placeholder", max_retries=0) as opened:
        yield opened


def test_a_chat_is_answered_with_its_counts(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="claw-local", messages=ASKED, max_tokens=8)
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage is not None and 0 < answer.usage.completion_tokens <= 8
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.model.startswith("SmolLM2")


def test_a_stream_says_the_same_and_ends_in_its_counts(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="claw-local", messages=ASKED, max_completion_tokens=8)
    chunks = list(
        client.chat.completions.create(
            model="claw-local",
            messages=ASKED,
            max_completion_tokens=8,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason
    assert whole.usage is not None and chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_seed_draws_the_same_again_and_a_stop_text_ends_it(client: openai.OpenAI) -> None:
    def ask(seed: int, **more: Any) -> str:
        answer = client.chat.completions.create(
            model="", messages=ASKED, max_tokens=12, temperature=1.5, top_p=0.9, seed=seed, **more
        )
        return answer.choices[0].message.content or ""

    first = ask(-7)
    assert first == ask(-7)
    assert len({first, *(ask(seed) for seed in range(1, 4))}) > 1
    word = first.split()[1]
    assert ask(-7, stop=[word]) == first[: first.index(word)]


def test_likelihoods_are_those_of_the_model(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="", messages=ASKED, max_tokens=4, temperature=0, logprobs=True, top_logprobs=3
    )
    noted = answer.choices[0].logprobs
    assert noted is not None and noted.content
    assert "".join(token.token for token in noted.content) == answer.choices[0].message.content
    for token in noted.content:
        assert token.bytes == list(token.token.encode())
        values = [other.logprob for other in token.top_logprobs]
        assert values == sorted(values, reverse=True) and len(values) == 3
        assert sum(math.exp(value) for value in values) <= 1.0 + 1e-6 and token.logprob <= 0.0


def test_an_answer_follows_a_schema(client: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 10}, "legs": {"type": "integer", "maximum": 8}},
        "required": ["name", "legs"],
        "additionalProperties": False,
    }
    answer = client.chat.completions.create(
        model="",
        messages=[{"role": "user", "content": "Describe a cat."}],
        max_tokens=60,
        response_format={"type": "json_schema", "json_schema": {"name": "animal", "schema": schema}},
    )
    found = json.loads(answer.choices[0].message.content or "")
    assert set(found) == {"name", "legs"} and isinstance(found["legs"], int) and found["legs"] <= 8


def test_json_mode_gives_an_object(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="",
        messages=[{"role": "user", "content": 'A colour as JSON, such as {"colour": "red"}'}],
        max_tokens=60,
        response_format={"type": "json_object"},
    )
    text = answer.choices[0].message.content or ""
    assert text.startswith("{")
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(text), dict)


def test_a_call_that_is_cut_off_is_no_answer(client: openai.OpenAI) -> None:
    asked: Any = {"model": "", "messages": ASKED, "tools": [WEATHER], "tool_choice": "required", "max_tokens": 4}
    (choice,) = client.chat.completions.create(**asked).choices
    assert choice.finish_reason == "length" and not choice.message.content and not choice.message.tool_calls
    parts = list(client.chat.completions.create(**asked, stream=True))
    assert "".join(part.choices[0].delta.content or "" for part in parts) == ""


@pytest.mark.parametrize("pattern", ["(", r"(a)\1"])
def test_a_pattern_that_cannot_be_kept_to_is_refused_in_plain_words(client: openai.OpenAI, pattern: str) -> None:
    shape = {"type": "string", "pattern": pattern}
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": shape}}
    with pytest.raises(openai.BadRequestError, match="No grammar can be made of the shape") as found:
        client.chat.completions.create(model="", messages=ASKED, max_tokens=4, response_format=form)
    assert "Error" not in str(found.value.body)


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_is_called_as_its_schema_says(client: openai.OpenAI, stream: bool) -> None:
    request: Any = {
        "model": "",
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
        "tools": [WEATHER],
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        "parallel_tool_calls": False,
        "max_tokens": 60,
    }
    if stream:
        deltas = [chunk.choices[0] for chunk in client.chat.completions.create(**request, stream=True)]
        pieces = [piece for delta in deltas for piece in delta.delta.tool_calls or ()]
        identity, name = pieces[0].id, pieces[0].function.name
        arguments = "".join(piece.function.arguments or "" for piece in pieces)
        assert deltas[-1].finish_reason == "tool_calls"
        assert not any(delta.delta.content for delta in deltas)
    else:
        choice = client.chat.completions.create(**request).choices[0]
        assert choice.finish_reason == "tool_calls" and choice.message.content is None
        (call,) = choice.message.tool_calls or ()
        identity, name, arguments = call.id, call.function.name, call.function.arguments
    assert name == "get_weather" and identity
    found = json.loads(arguments)
    assert set(found) == {"city", "unit"} and found["unit"] in ("C", "F")


def test_a_tools_result_is_answered(client: openai.OpenAI) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    messages: Any = [
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "18 degrees, sunny"},
    ]
    answer = client.chat.completions.create(model="", messages=messages, tools=[WEATHER], max_tokens=12)
    assert answer.choices[0].message.content or answer.choices[0].message.tool_calls


@pytest.mark.parametrize("stream", [False, True])
def test_marks_that_an_answer_repeats_from_its_prompt_are_not_sent(
    client: openai.OpenAI, served: Served, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    with served.assistant.using_model() as engine:
        generate = engine.generate

    def echoing(*arguments: Any, **options: Any) -> Any:
        generation, pieces = generate(*arguments, **options)
        return generation, chain(("<tool_res", "ponse>\n"), pieces)

    monkeypatch.setattr(engine, "generate", echoing)
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
    messages: Any = [
        *({"role": "user", "content": "Weather in Rome?"}, {"role": "assistant", "tool_calls": [call]}),
        {"role": "tool", "tool_call_id": "call_1", "content": "18 degrees, sunny"},
    ]
    asked: Any = {"model": "", "messages": messages, "max_tokens": 8}
    if stream:
        chunks = client.chat.completions.create(**asked, stream=True)
        said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    else:
        said = client.chat.completions.create(**asked).choices[0].message.content or ""
    assert said.strip() and "tool_response" not in said


def test_text_goes_on_as_it_is(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="", prompt="One, two, three,", max_tokens=6, temperature=0, echo=True)
    assert answer.choices[0].text.startswith("One, two, three,") and "four" in answer.choices[0].text
    several = client.completions.create(model="", prompt=["One, two,", "A, B,"], max_tokens=2, logprobs=1)
    assert [choice.index for choice in several.choices] == [0, 1]
    assert several.choices[0].logprobs is not None and several.choices[0].logprobs.tokens
    streamed = client.completions.create(model="", prompt="One, two, three,", max_tokens=6, stream=True)
    assert "four" in "".join(chunk.choices[0].text for chunk in streamed)


def test_vectors_have_length_one_and_near_texts_are_near(client: openai.OpenAI) -> None:
    found = client.embeddings.create(
        model="", input=["The cat sat.", "A cat was sitting.", "Quarterly tax revenue law"]
    )
    cat, sitting, tax = ([*one.embedding] for one in found.data)
    assert math.isclose(math.hypot(*cat), 1.0, rel_tol=1e-5)
    near, far = (sum(a * b for a, b in zip(cat, other, strict=True)) for other in (sitting, tax))
    assert near > far


def test_models_are_what_is_in_use_and_the_base(client: openai.OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names[0] == "claw-local" and names[1].startswith("SmolLM2")
    assert client.models.retrieve(names[1]).id == names[1]
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-nothing")


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"model": "gpt-nothing"}, ""),
        ({"temperature": 9}, "temperature"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": "word " * 3000}]}, "messages"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_sentence(
    client: openai.OpenAI, request_: dict[str, Any], field: str
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(**{"model": "", "messages": ASKED, "max_tokens": 4, **request_})
    assert caught.value.status_code == (404 if "model" in request_ else 400)
    body: Any = caught.value.body
    assert body["message"] and body["type"] and (body["param"] or "").startswith(field)
    assert "/" not in body["message"].replace("/v1", "") and "Traceback" not in body["message"]
