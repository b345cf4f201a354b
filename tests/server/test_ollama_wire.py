"""Ollama's requests and answers, to and from the server's own form."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from claw_local.server import ollama_lines as lines
from claw_local.server import ollama_models as models
from claw_local.server import ollama_wire as wire
from claw_local.server.api import Whole
from claw_local.server.asking import (
    ANY_OBJECT,
    Asked,
    Caller,
    CallPiece,
    Drawn,
    Ended,
    Offered,
    Piece,
    Said,
    Session,
    TokenLogprob,
    ToolCall,
)
from claw_local.server.errors import Busy, Invalid, Unavailable

CALLER = Caller()


def chat(**fields: Any) -> Asked:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]} | fields
    return wire.chat(wire.ChatRequest.model_validate(body), "m", CALLER, Session())


def generate(**fields: Any) -> Asked:
    body = {"model": "m", "prompt": "Hello"} | fields
    return wire.generate(wire.GenerateRequest.model_validate(body), "m", CALLER, Session())


def test_options_say_how_to_draw_and_unknown_ones_change_nothing() -> None:
    options = {"num_predict": 9, "temperature": 0, "top_p": 0.5, "top_k": 3, "seed": 4, "stop": "END", "num_ctx": 512}
    assert chat(options=options).drawn == Drawn(
        max_tokens=9, temperature=0.0, top_p=0.5, top_k=3, seed=4, stop=("END",)
    )
    assert chat().drawn == Drawn()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"num_predict": -1}, Drawn(max_tokens=wire.MOST_TOKENS)),
        ({"num_predict": 0}, Drawn(max_tokens=wire.MOST_TOKENS)),
        ({"seed": -1}, Drawn()),
        ({"repeat_penalty": 0}, Drawn(repeat_penalty=1.0)),
        ({"top_p": 0}, Drawn(top_p=1e-6)),
        ({"top_k": -1}, Drawn(top_k=0)),
        ({"stop": ["", "\n"]}, Drawn(stop=("\n",))),
    ],
)
def test_ollamas_ways_to_switch_an_option_off(options: dict[str, Any], expected: Drawn) -> None:
    assert chat(options=options).drawn == expected


def test_calls_without_ids_are_matched_to_their_results() -> None:
    calls = [{"function": {"name": name, "arguments": {"n": n}}} for n, name in enumerate(("add", "mul"))]
    got = chat(
        messages=[
            {"role": "user", "content": "?"},
            {"role": "assistant", "tool_calls": calls},
            {"role": "tool", "content": "6", "tool_name": "mul"},
            {"role": "tool", "content": "5"},
        ],
        tools=[{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}],
    )
    made = got.messages[1].calls
    assert [call.name for call in made] == ["add", "mul"] and made[0].id != made[1].id
    assert got.messages[2] == Said("tool", "6", call_id=made[1].id, name="mul")
    assert got.messages[3] == Said("tool", "5", call_id=made[0].id, name="add")
    assert got.tools[0].parameters == {"type": "object"}


def test_a_format_is_any_object_or_one_shape() -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}}
    assert chat(format="json").shape == ANY_OBJECT
    assert json.loads(chat(format=schema).shape) == schema
    assert chat(format="").shape == "" and chat(format=None).shape == ""


def test_a_prompt_is_a_message_and_a_raw_one_a_text() -> None:
    assert generate(system="Be brief.").messages == (Said("system", "Be brief."), Said("user", "Hello"))
    raw = generate(raw=True)
    assert raw.prompt == "Hello" and raw.messages == ()


def test_logprobs_are_asked_for_with_the_likeliest_beside_them() -> None:
    assert chat().logprobs is None
    assert chat(logprobs=True).logprobs == 0
    assert chat(logprobs=True, top_logprobs=3).logprobs == 3


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"suffix": "return x"}, "suffix"),
        ({"template": "{{ .Prompt }}"}, "template"),
        ({"images": ["aGVsbG8="]}, "images"),
        ({"think": True}, "think"),
    ],
)
def test_what_the_model_cannot_do_names_the_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        generate(**fields)
    assert caught.value.field == field and caught.value.message.endswith(".")


def test_an_answer_begun_by_the_client_is_refused() -> None:
    with pytest.raises(Invalid):
        chat(messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "{"}])


@pytest.mark.parametrize(
    "fields", [{"messages": "x"}, {"format": 3}, {"options": {"seed": "x"}}, {"messages": [{"role": "x"}]}]
)
def test_what_is_malformed_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        chat(**fields)


@pytest.mark.parametrize(
    ("keep_alive", "unloads"), [(0, True), ("0s", True), ("5m", False), (-1, False), (None, False)]
)
def test_zero_asks_for_the_model_to_go(keep_alive: float | str | None, unloads: bool) -> None:
    assert wire.ChatRequest(model="m", keep_alive=keep_alive).unloads == unloads


def test_names_come_with_or_without_ollamas_tag() -> None:
    assert wire.ModelRequest(name="smol:latest").asked_for == "smol"
    assert wire.ModelRequest(model="smol").asked_for == "smol"


def ended(**fields: Any) -> Ended:
    return Ended(
        **(
            {
                "finish": "stop",
                "prompt_tokens": 9,
                "completion_tokens": 3,
                "prompt_ids": (1, 2),
                "response_ids": (3,),
                "load_s": 0.5,
                "prompt_s": 0.25,
                "total_s": 1.0,
            }
            | fields
        )
    )


def test_a_whole_answer_has_counts_and_times_in_nanoseconds() -> None:
    got = lines.one("m", Whole("Hi", [], [], ended()), lines.in_text, context=True)
    assert got["response"] == "Hi" and got["done"] and got["done_reason"] == "stop" and got["context"] == [1, 2, 3]
    assert (got["total_duration"], got["load_duration"]) == (10**9, 5 * 10**8)
    assert (got["prompt_eval_duration"], got["eval_duration"]) == (25 * 10**7, 25 * 10**7)
    assert (got["prompt_eval_count"], got["eval_count"]) == (9, 3)


def test_a_call_that_was_cut_becomes_text() -> None:
    calls = [ToolCall("a", "add", '{"n": 1}'), ToolCall("b", "add", '{"n": ')]
    got = lines.one("m", Whole("", calls, [], ended(finish="length")), lines.in_chat, context=False)
    assert got["message"]["content"] == '{"n": ' and got["done_reason"] == "length" and "context" not in got
    assert [call["function"]["arguments"] for call in got["message"]["tool_calls"]] == [{"n": 1}]


def test_an_answer_that_was_broken_off_is_an_error() -> None:
    with pytest.raises(Unavailable):
        lines.one("m", Whole("Hal", [], [], ended(finish="cancelled")), lines.in_text, context=False)


async def pieces(*parts: Piece | Ended | Exception) -> AsyncIterator[Piece | Ended]:
    for part in parts:
        if isinstance(part, Exception):
            raise part
        yield part


async def stream(*parts: Piece | Ended | Exception) -> list[dict[str, Any]]:
    return [json.loads(line) async for line in lines.lines("m", pieces(*parts), lines.in_chat, context=False)]


async def test_calls_are_streamed_whole_and_numbered() -> None:
    got = await stream(
        Piece("Wait."),
        Piece(call=CallPiece(0, "a", "add", "")),
        Piece(call=CallPiece(0, arguments='{"n": 1}')),
        Piece(call=CallPiece(1, "b", "mul", "{}")),
        ended(finish="tool_calls"),
    )
    assert [line["message"]["content"] for line in got] == ["Wait.", "", "", ""]
    calls = [call["function"] for line in got for call in line["message"].get("tool_calls", [])]
    assert calls == [{"index": 0, "name": "add", "arguments": {"n": 1}}, {"index": 1, "name": "mul", "arguments": {}}]
    assert [line["done"] for line in got] == [False, False, False, True]


async def test_logprobs_come_with_their_pieces() -> None:
    token = TokenLogprob("Hi", b"Hi", -0.5, (("Hi", -0.5), ("Oh", -1.5)))
    got = await stream(Piece("Hi", logprobs=(token,)), ended())
    assert got[0]["logprobs"][0]["bytes"] == [72, 105] and got[0]["logprobs"][0]["top_logprobs"][1]["token"] == "Oh"


async def test_what_fails_on_the_way_is_the_last_line() -> None:
    got = await stream(Piece("Hal"), Busy("No place is free."))
    assert got[-1] == {"error": "No place is free."}


def test_models_are_described_as_ollama_does() -> None:
    alias = Offered(
        "claw-local", 0, 7, "ab" * 32, in_use=True, context=2048, parameters=134_515_008, architecture="llama"
    )
    base = replace(alias, name="Smol-Q4_1")
    learned = replace(base, name="evening", created=60, adapter=3, in_use=False)
    every = [alias, base, learned]
    listed = models.tags(every)["models"][1:]
    assert [model["name"] for model in listed] == ["Smol-Q4_1", "evening"]
    assert listed[0]["digest"] == "ab" * 32 != listed[1]["digest"] and len(listed[1]["digest"]) == 64
    assert listed[1]["details"] == {
        "parent_model": "Smol-Q4_1",
        "format": "gguf",
        "family": "llama",
        "families": ["llama"],
        "parameter_size": "134.52M",
        "quantization_level": "Q4_1",
    }
    assert listed[1]["modified_at"] == "1970-01-01T00:01:00Z"
    assert [model["name"] for model in models.running(every)["models"]] == ["claw-local", "Smol-Q4_1"]
    info = models.shown(base, every)["model_info"]
    assert info["llama.context_length"] == 2048 and info["general.parameter_count"] == 134_515_008
