"""What other programs send: bodies for the three APIs, and calls that a model writes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from claw_local.engine.base import Call
from claw_local.engine.call_reader import CallReader
from claw_local.engine.tool_forms import BARE, IN_WORDS, LISTED, TAGGED, Form, schema
from claw_local.errors import ClawError
from claw_local.server import anthropic_wire, ollama_wire, openai_wire
from claw_local.server.asking import Asked, Caller, Session
from claw_local.server.errors import ServeError
from claw_local.talking.asked import Tool
from claw_local.talking.calling import messages, spec_of
from claw_local.tools import arguments
from claw_local.tools.base import ToolError

from .mutate import as_json, damaged_json
from .target import Target

_SCHEMA = {"type": "object", "properties": {"city": {"$ref": "#/$defs/City"}}, "$defs": {"City": {"type": "string"}}}
_OPENAI = {
    "model": "claw-local",
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "42"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": _SCHEMA}}],
    "tool_choice": "auto",
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": _SCHEMA}},
    "temperature": 0.5,
    "max_tokens": 5,
    "stop": ["a"],
    "seed": 1,
    "user": "me",
    "stream": True,
    "stream_options": {"include_usage": True},
    "logprobs": True,
    "top_logprobs": 2,
}
_ANTHROPIC = {
    "model": "claw-local",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "Be kind."}],
    "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "42"}]},
    ],
    "tools": [{"name": "f", "description": "d", "input_schema": _SCHEMA}],
    "tool_choice": {"type": "auto"},
    "stop_sequences": ["a"],
    "temperature": 0.5,
    "metadata": {"user_id": "me"},
    "stream": False,
}
_OLLAMA = {
    "model": "claw-local",
    "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": _SCHEMA}}],
    "format": _SCHEMA,
    "options": {"temperature": 0.5, "num_predict": 5, "stop": ["a"], "seed": 1},
    "stream": False,
    "keep_alive": "5m",
}
_CALLS = (
    b'<tool_call>\n{"name": "read", "arguments": {"path": "a.txt", "lines": 3}}\n</tool_call> done',
    b'[{"name": "write", "arguments": {"path": "a", "content": "x"}}, {"name": "run", "arguments": "ls"}]',
    b'{"name": "search", "parameters": {"text": "x"}}; {"function": {"name": "list", "arguments": {"depth": 9}}}',
)
_CALL_WORDS = (
    b"<tool_call>",
    b"</tool_call>",
    b"{",
    b"[",
    b"[" * 300,
    b'{"a":' * 200,
    b'"name":',
    b"}",
    b"]",
    b"\\u0000",
    b"NaN",
)
_KINDS = (arguments.List, arguments.Read, arguments.Search, arguments.Write, arguments.Append, arguments.Run)


def targets(folder: Path) -> list[Target]:
    caller, session = Caller(), Session()
    request = Request({"type": "http", "headers": [], "method": "POST", "path": "/", "query_string": b"", "state": {}})
    request.state.caller = caller

    def api(name: str, kind: type[BaseModel], asked: Callable[[Any], Asked | list[Asked]], seed: Any) -> Target:
        def read(data: bytes) -> None:
            try:
                body = json.loads(data)
            except (ValueError, RecursionError):  # As the framework answers it, before any of ours sees it.
                return
            try:
                made = asked(kind.model_validate(body))
            except (ValidationError, ServeError):
                return
            for one in made if isinstance(made, list) else [made]:
                _used(one)

        return Target(
            f"api-{name}",
            read,
            [as_json(seed)],
            words=(b"null", b"{}", b"[]"),
            make=lambda c: as_json(damaged_json(seed, c)),
        )

    def read_calls(data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        for form in (TAGGED, LISTED, BARE, IN_WORDS, Form()):
            reader = CallReader(form)
            for start in range(0, len(text), 7):
                reader.push(text[start : start + 7])
            reader.finish()
            for name, given in reader.calls:
                try:
                    values = json.loads(given)
                except (ValueError, RecursionError):
                    continue
                call = Call(name, values if isinstance(values, dict) else {})
                for kind in _KINDS:
                    try:
                        arguments.checked(kind, call)
                    except ToolError:
                        pass

    def made_calls(chance: random.Random) -> bytes:
        value = damaged_json([{"name": "read", "arguments": {"path": "a.txt", "lines": 3}}], chance)
        text = as_json(value[0] if isinstance(value, list) and value and chance.random() < 0.5 else value)
        if chance.random() < 0.1:
            depth = chance.choice((100, 490, 700))
            text = b"[" * depth + text + b"]" * depth
        return chance.choice((b"<tool_call>", b"")) + text

    return [
        api("openai", openai_wire.ChatRequest, lambda body: body.asked(request), _OPENAI),
        api(
            "completions",
            openai_wire.CompletionRequest,
            lambda body: body.asked(request),
            {"model": "m", "prompt": ["a", "b"], "max_tokens": 3, "logprobs": 2, "stop": "x", "echo": False},
        ),
        api(
            "anthropic",
            anthropic_wire.MessagesRequest,
            lambda body: anthropic_wire.asked(body, caller, session),
            _ANTHROPIC,
        ),
        api("ollama", ollama_wire.ChatRequest, lambda body: ollama_wire.chat(body, "m", caller, session), _OLLAMA),
        Target("tool-calls", read_calls, _CALLS, words=_CALL_WORDS, make=made_calls, weight=0.5),
    ]


def _used(asked: Asked) -> None:
    """What is done with a request before the model sees it."""
    messages(asked.messages)
    try:
        tools = [spec_of(Tool(tool.name, tool.description, tool.parameters)) for tool in asked.tools]
        for form in (TAGGED, IN_WORDS):
            if tools:
                schema(tools, form, asked.shape)
    except (ClawError, RecursionError):  # Too deep: answered with 400.
        pass
