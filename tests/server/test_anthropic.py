"""Anthropic's own package against a running server with the embedded model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_tool

from .conftest import Served

MODEL = "claw-local"
QUESTION: list[Any] = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
WEATHER: dict[str, Any] = {
    "name": "weather",
    "description": "The weather of a city today.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
        "required": ["city"],
    },
}


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[Anthropic]:
    with Anthropic(api_key="none", base_url=served.url, max_retries=0) as client:
        yield client


def test_a_message_is_answered(client: Anthropic) -> None:
    answer = client.messages.create(model=MODEL, max_tokens=24, messages=QUESTION)
    assert answer.content[0].type == "text" and "Paris" in answer.content[0].text
    assert answer.role == "assistant" and answer.model == MODEL
    assert answer.stop_reason == "end_turn" or answer.usage.output_tokens == 24
    counted = client.messages.count_tokens(model=MODEL, messages=QUESTION)
    assert counted.input_tokens == answer.usage.input_tokens > 10


def test_a_stream_adds_up_to_the_same_message(client: Anthropic) -> None:
    whole = client.messages.create(model=MODEL, max_tokens=24, messages=QUESTION)
    with client.messages.stream(model=MODEL, max_tokens=24, messages=QUESTION) as stream:
        pieces = list(stream.text_stream)
        last = stream.get_final_message()
    assert len(pieces) > 1 and "".join(pieces) == last.content[0].text == whole.content[0].text  # type: ignore[union-attr]
    assert last.usage.output_tokens == whole.usage.output_tokens
    assert last.usage.input_tokens == whole.usage.input_tokens and last.stop_reason == whole.stop_reason


def test_the_raw_events_come_in_anthropics_order(client: Anthropic) -> None:
    events = list(client.messages.create(model=MODEL, max_tokens=4, messages=QUESTION, stream=True))
    kinds = [event.type for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(kinds[2:-3]) == {"content_block_delta"}


async def test_the_asynchronous_client_streams_too(served: Served) -> None:
    async with (
        AsyncAnthropic(api_key="none", base_url=served.url, max_retries=0) as client,
        client.messages.stream(model=MODEL, max_tokens=8, messages=QUESTION) as stream,
    ):
        pieces = [text async for text in stream.text_stream]
    assert "".join(pieces)


def test_a_system_prompt_counts(client: Anthropic) -> None:
    bare = client.messages.count_tokens(model=MODEL, messages=QUESTION)
    told = client.messages.count_tokens(model=MODEL, messages=QUESTION, system="You are a pirate of the Caribbean sea.")
    assert told.input_tokens != bare.input_tokens


def test_a_stop_sequence_ends_the_answer_and_is_named(client: Anthropic) -> None:
    answer = client.messages.create(model=MODEL, max_tokens=24, messages=QUESTION, stop_sequences=["Paris"])
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "Paris")
    assert all("Paris" not in block.text for block in answer.content if block.type == "text")


def test_a_temperature_counts_though_the_package_no_longer_names_it(client: Anthropic) -> None:
    def said(temperature: float) -> str:
        answer = client.messages.create(
            model=MODEL,
            max_tokens=8,
            messages=[{"role": "user", "content": "Invent a name."}],
            extra_body={"temperature": temperature, "top_k": 0},
        )
        return "".join(block.text for block in answer.content if block.type == "text")

    assert said(0) == said(0)
    assert len({said(1.0) for _ in range(4)}) > 1
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        said(7)


def test_the_longest_answer_is_kept_to(client: Anthropic) -> None:
    answer = client.messages.create(model=MODEL, max_tokens=3, messages=[{"role": "user", "content": "Tell a story."}])
    assert answer.stop_reason == "max_tokens" and answer.usage.output_tokens == 3


def test_a_tool_is_used_and_its_result_is_answered(client: Anthropic) -> None:
    asked: list[Any] = [{"role": "user", "content": "What is the weather in Rome?"}]
    choice: Any = {"type": "tool", "name": "weather"}
    answer = client.messages.create(model=MODEL, max_tokens=60, messages=asked, tools=[WEATHER], tool_choice=choice)
    assert answer.stop_reason == "tool_use"
    used = next(block for block in answer.content if block.type == "tool_use")
    assert used.name == "weather" and used.input["city"] in ("Paris", "Rome")
    result = {"type": "tool_result", "tool_use_id": used.id, "content": "21 degrees and sunny"}
    more = [*asked, {"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    again = client.messages.create(
        model=MODEL, max_tokens=30, messages=more, tools=[WEATHER], tool_choice={"type": "none"}
    )
    assert again.content[0].type == "text" and again.stop_reason in ("end_turn", "max_tokens")


def test_a_tool_is_used_in_a_stream(client: Anthropic) -> None:
    with client.messages.stream(
        model=MODEL,
        max_tokens=60,
        messages=[{"role": "user", "content": "What is the weather in Rome?"}],
        tools=[WEATHER],  # type: ignore[list-item]
        tool_choice={"type": "any"},
    ) as stream:
        answer = stream.get_final_message()
    used = [block for block in answer.content if block.type == "tool_use"]
    assert used and used[0].name == "weather" and used[0].input["city"] in ("Paris", "Rome")
    assert answer.stop_reason == "tool_use"


def test_the_tool_runner_runs_tools_of_its_own(client: Anthropic) -> None:
    called: list[str] = []

    @beta_tool
    def weather(city: Literal["Paris", "Rome"]) -> str:
        """The weather of a city today.

        Args:
            city: which city
        """
        called.append(city)
        return "21 degrees and sunny"

    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=60,
        max_iterations=2,
        tools=[weather],
        tool_choice={"type": "any"},
        messages=[{"role": "user", "content": "What is the weather in Rome?"}],
    )
    replies = list(runner)
    assert called and len(replies) == 2


def test_a_shape_is_kept_to(client: Anthropic) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}, "old": {"type": "boolean"}},
        "required": ["city", "old"],
        "additionalProperties": False,
    }
    answer = client.messages.create(
        model=MODEL,
        max_tokens=60,
        messages=QUESTION,
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )
    assert answer.content[0].type == "text"
    found = json.loads(answer.content[0].text)
    assert found["city"] in ("Paris", "Rome") and isinstance(found["old"], bool)


def test_models_are_listed(client: Anthropic) -> None:
    listed = list(client.models.list())
    assert listed[0].id == MODEL and listed[0].type == "model" and listed[0].created_at.year > 2000
    assert client.models.retrieve(MODEL).display_name == MODEL


def test_errors_are_those_the_package_knows(client: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as missing:
        client.messages.create(model="claude", max_tokens=3, messages=QUESTION)
    assert missing.value.body["error"]["type"] == "not_found_error"  # type: ignore[index]
    image: Any = [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}]
    with pytest.raises(anthropic.BadRequestError) as unseen:
        client.messages.create(model=MODEL, max_tokens=3, messages=[{"role": "user", "content": image}])
    assert "Images cannot be read" in unseen.value.message
    with pytest.raises(anthropic.BadRequestError) as malformed:
        client.messages.create(model=MODEL, max_tokens=-3, messages=QUESTION)
    assert malformed.value.body["error"]["type"] == "invalid_request_error"  # type: ignore[index]
    assert "max_tokens" in malformed.value.message
    zipped: Any = [{"role": "user", "content": [{"type": "zip"}]}]
    with pytest.raises(anthropic.BadRequestError, match=r"messages.*content.*zip"):
        client.messages.create(model=MODEL, max_tokens=3, messages=zipped)
    long: list[Any] = [{"role": "user", "content": "word " * 20_000}]
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(model=MODEL, max_tokens=3, messages=long)
