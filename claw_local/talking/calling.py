"""A client's history, with its calls and results, as the engine takes it. It must never know how a model is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..engine.base import Call, Message
from ..engine.tool_forms import ToolSpec
from .asked import Said, Tool, ToolCall


def spec_of(tool: Tool) -> ToolSpec:
    """A client's tool, as models are told of it."""
    return ToolSpec(tool.name, tool.description, json.dumps(dict(tool.parameters), ensure_ascii=False))


def messages(said: Sequence[Said]) -> list[Message]:
    """System prompts become one, at the front; all else is one message each."""
    system = "\n\n".join(one.content for one in said if one.role == "system" and one.content.strip())
    made = [Message("system", system)] if system else []
    names = {call.id: call.name for one in said for call in one.calls}
    for one in said:
        if one.role == "system":
            continue
        if one.role == "tool":
            name = one.name or names.get(one.call_id, "")
            made.append(Message("tool", one.content, name=name, call_id=one.call_id))
        else:
            calls = tuple(Call(call.name, _object(call.arguments), call.id) for call in one.calls)
            made.append(Message(one.role, one.content, calls=calls))
    return made


def in_text(call: ToolCall) -> str:
    """A call as JSON."""
    return json.dumps({"name": call.name, "arguments": _object(call.arguments)}, ensure_ascii=False)


def _object(arguments: str) -> Any:
    try:
        found = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return {"text": arguments}
    return found if isinstance(found, dict) else {"value": found}
