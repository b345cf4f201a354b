"""Anthropic's requests and answers, to and from the server's own form."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import ValidationError

from claw_local.server import anthropic_events as events
from claw_local.server.anthropic_wire import MessagesRequest, NoThreads, asked
from claw_local.server.api import Whole
from claw_local.server.asking import Asked, Began, Caller, CallPiece, Ended, Piece, Said, Session, ToolCall
from claw_local.server.errors import Busy, Invalid, Missing, Unavailable

CALLER = Caller()
WEATHER = {"name": "weather", "description": "Weather of a place", "input_schema": {"type": "object"}}


def read(**fields: Any) -> Asked:
    body = {"model": "m", "max_tokens": 20, "messages": [{"role": "user", "content": "Hello"}]} | fields
    return asked(MessagesRequest.model_validate(body), CALLER, Session())


def test_a_plain_request_keeps_what_it_says_about_drawing() -> None:
    got = read(system="Be brief.", temperature=0.2, top_p=0.9, top_k=5, stop_sequences=["END"])
    assert got.messages == (Said("system", "Be brief."), Said("user", "Hello"))
    drawn = got.drawn
    assert (drawn.max_tokens, drawn.temperature, drawn.top_p, drawn.top_k, drawn.stop) == (20, 0.2, 0.9, 5, ("END",))


def test_text_blocks_are_joined_and_cache_marks_are_left_out() -> None:
    block = {"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}
    got = read(system=[block], messages=[{"role": "user", "content": [block, {"type": "text", "text": "two"}]}])
    assert got.messages == (Said("system", "one"), Said("user", "one\ntwo"))


def test_a_tools_result_is_a_message_of_its_own_before_what_the_person_says() -> None:
    got = read(
        tools=[WEATHER],
        messages=[
            {"role": "user", "content": "Weather in Rome?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"place": "Rome"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "21 °C"}]},
                    {"type": "text", "text": "In Fahrenheit, please."},
                ],
            },
        ],
    )
    assert got.messages[1] == Said("assistant", "I look.", calls=(ToolCall("toolu_1", "weather", '{"place": "Rome"}'),))
    assert got.messages[2] == Said("tool", "21 °C", call_id="toolu_1", name="weather")
    assert got.messages[3] == Said("user", "In Fahrenheit, please.")
    assert got.tools[0].name == "weather" and got.choice == "auto"


def test_a_failed_tool_says_so_in_its_result() -> None:
    used = {"type": "tool_use", "id": "t", "name": "weather", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "no network", "is_error": True}
    turns = [{"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
    got = read(messages=[{"role": "user", "content": "Weather?"}, *turns])
    assert got.messages[-1].content == "Error: no network"


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "weather"}, "weather"),
    ],
)
def test_tool_choices_have_their_counterparts(choice: dict[str, Any], expected: str) -> None:
    assert read(tools=[WEATHER], tool_choice=choice).choice == expected
    assert not read(tools=[WEATHER], tool_choice=choice | {"disable_parallel_tool_use": True}).parallel


def test_a_shape_is_passed_on_as_json_schema() -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}}
    assert json.loads(read(output_config={"format": {"type": "json_schema", "schema": schema}}).shape) == schema


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "{"}]}, "messages"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools.0.type"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "clock"}}, "tool_choice.name"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"stop_sequences": [""]}, "stop_sequences"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]},
            "messages.0.content.0",
        ),
    ],
)
def test_what_cannot_be_done_names_the_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        read(**fields)
    assert caught.value.field == field and caught.value.message.endswith(".")


@pytest.mark.parametrize(
    "fields", [{"max_tokens": 0}, {"messages": []}, {"temperature": 1.5}, {"messages": [{"role": "x", "content": ""}]}]
)
def test_what_is_malformed_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read(**fields)


def test_a_client_that_wants_a_thread_is_told_in_words_it_knows() -> None:
    with pytest.raises(NoThreads) as caught:
        read(thread={"type": "create"})
    assert events.error_body(caught.value)["error"]["details"]["error_code"] == "thread_unsupported_request"


def ended(**fields: Any) -> Ended:
    return Ended(**({"finish": "stop", "model": "m", "prompt_tokens": 9, "completion_tokens": 3} | fields))


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (ended(), ("end_turn", None)),
        (ended(stopped_by="END"), ("stop_sequence", "END")),
        (ended(finish="length", completion_tokens=20), ("max_tokens", None)),
        (ended(finish="length", completion_tokens=8), ("model_context_window_exceeded", None)),
        (ended(finish="tool_calls"), ("tool_use", None)),
    ],
)
def test_each_end_has_its_stop_reason(end: Ended, expected: tuple[str, str | None]) -> None:
    assert events.stop_reason(read(), end) == expected


def test_an_answer_that_was_broken_off_is_an_error() -> None:
    with pytest.raises(Unavailable):
        events.message(read(), "m", Whole("Hal", [], [], ended(finish="cancelled")))


def test_a_whole_answer_holds_text_and_calls() -> None:
    calls = [ToolCall("t1", "weather", '{"place": "Rome"}'), ToolCall("t2", "weather", '{"pla')]
    got = events.message(read(), "m", Whole("I look.", calls, [], ended(finish="tool_calls")))
    assert got["content"] == [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "weather", "input": {"place": "Rome"}},
        {"type": "tool_use", "id": "t2", "name": "weather", "input": {}},
    ]
    assert got["stop_reason"] == "tool_use" and got["usage"]["input_tokens"] == 9 and got["id"].startswith("msg_")


async def pieces(*parts: Piece | Ended | Exception) -> AsyncIterator[Piece | Ended]:
    for part in parts:
        if isinstance(part, Exception):
            raise part
        yield part


async def stream(*parts: Piece | Ended | Exception) -> list[dict[str, Any]]:
    found = []
    async for text in events.events(read(), "m", pieces(Piece(began=Began("m", 4, 9)), *parts)):
        name, data = text.removesuffix("\n\n").split("\n")
        body = json.loads(data.removeprefix("data: "))
        assert name == f"event: {body['type']}"
        found.append(body)
    return found


async def test_the_stream_opens_and_closes_each_block_in_its_turn() -> None:
    got = await stream(
        Piece("I "),
        Piece("look."),
        Piece(call=CallPiece(0, "t1", "weather", "")),
        Piece(call=CallPiece(0, arguments='{"place": ')),
        Piece(call=CallPiece(0, arguments='"Rome"}')),
        Piece(call=CallPiece(1, "t2", "clock", "{}")),
        ended(finish="tool_calls"),
    )
    kinds = [(event["type"], event.get("index")) for event in got]
    delta = "content_block_delta"
    assert kinds == [
        ("message_start", None),
        ("ping", None),
        ("content_block_start", 0),
        (delta, 0),
        (delta, 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        (delta, 1),
        (delta, 1),
        ("content_block_stop", 1),
        ("content_block_start", 2),
        (delta, 2),
        ("content_block_stop", 2),
        ("message_delta", None),
        ("message_stop", None),
    ]
    assert got[0]["message"]["usage"]["input_tokens"] == 9 and got[0]["message"]["id"].startswith("msg_4-")
    assert got[-2]["usage"]["output_tokens"] == 3 and got[-2]["delta"]["stop_reason"] == "tool_use"


async def test_what_fails_on_the_way_is_an_event_and_the_end() -> None:
    got = await stream(Piece("Hal"), Busy("No place is free."))
    assert got[-1]["type"] == "error"
    assert got[-1]["error"] == {"type": "rate_limit_error", "message": "No place is free."}


def test_an_error_has_anthropics_names() -> None:
    body = events.error_body(Missing("There is no such model.", field="model"))
    assert body["type"] == "error"
    assert body["error"] == {"type": "not_found_error", "message": "model: There is no such model."}
