"""Calling tools: how a model is told of them, the grammar of a call, and calls read out of what it writes.

A model whose template knows tools is told by it, and read in the form it was taught. Any other one is told in words,
and a grammar keeps its calls whole. It must never run a tool, nor know who does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..engine.base import Call, Message, ToolText
from ..engine.grammar import grammar_of
from ..errors import EngineError
from .asked import Said, Tool, ToolCall

MOST_CALLS = 8
"""Calls of one reply: a small model that has begun may never stop."""
DEEPEST = 4
MOST_PARTS = 4000
"""Parts that a schema may have once its references are written out; further ones may be anything."""
"""How often a schema may be put into itself."""
MOST_LEVELS = 80
"""Objects and lists inside each other; what is deeper may be anything."""


@dataclass(frozen=True)
class Form:
    """How a model writes calls.

    Attributes:
        opens, closes: what stands around each; "" for nothing, and then a call stands alone.
        arguments: the name under which arguments stand.
        own: whether the model's template writes tools and calls.
        listed: whether calls stand in a JSON array.
    """

    opens: str = ""
    closes: str = ""
    arguments: str = "arguments"
    own: bool = False
    listed: bool = False


IN_WORDS = Form()
TAGGED = Form("<tool_call>", "</tool_call>", own=True)
"""Hermes, Qwen and many more."""
LISTED = Form(own=True, listed=True)
"""Mistral. The mark before it is a control token, which is no text."""
BARE = Form(arguments="parameters", own=True)
"""Llama 3."""


def form_of(template: str, takes_tools: bool) -> Form:
    """The form a chat template teaches."""
    if not takes_tools:
        return IN_WORDS
    if "<tool_call>" in template:
        return TAGGED
    if "[TOOL_CALLS]" in template:
        return LISTED
    return BARE if '"parameters"' in template or "python_tag" in template else TAGGED


# Told


def tool_texts(tools: Sequence[Tool]) -> list[ToolText]:
    """Tools as templates take them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters) or {"type": "object", "properties": {}},
            },
        }
        for tool in tools
    ]


def in_words(tools: Sequence[Tool], choice: str) -> str:
    """What a model without such a template is told, at the end of its system prompt."""
    told = "\n".join(
        json.dumps(
            {"name": tool.name, "description": tool.description, "arguments": dict(tool.parameters)}, ensure_ascii=False
        )
        for tool in tools
    )
    ask = {
        "auto": "To call one, answer with nothing but a JSON object",
        "required": "Answer with nothing but a JSON object that calls one of them",
    }.get(choice, f"Answer with nothing but a JSON object that calls {choice}")
    return (
        f"These tools can be called:\n{told}\n"
        f'{ask}, such as {{"name": "{tools[0].name}", "arguments": {{}}}}. The result is shown to you then.'
    )


def messages(said: Sequence[Said], form: Form) -> list[Message]:
    """A history as the engine takes it, calls and results included. System prompts become one, at the front."""
    system = "\n\n".join(one.content for one in said if one.role == "system" and one.content.strip())
    made = [Message("system", system)] if system else []
    names = {call.id: call.name for one in said for call in one.calls}
    for one in said:
        if one.role == "system":
            continue
        name = one.name or names.get(one.call_id, "")
        if one.role == "tool" and not form.own:
            made.append(Message("user", f"Result of {name or 'the tool'}:\n{one.content}"))
        elif one.role == "tool":
            made.append(Message("tool", one.content, name=name, call_id=one.call_id))
        elif one.calls and form.own:
            calls = tuple(Call(call.name, _object(call.arguments), call.id) for call in one.calls)
            made.append(Message("assistant", one.content, calls=calls))
        elif one.calls:
            written = "\n".join(in_text(call) for call in one.calls)
            made.append(Message("assistant", f"{one.content}\n{written}".strip()))
        else:
            made.append(Message(one.role, one.content))
    return made


def with_system(made: Sequence[Message], more: str) -> list[Message]:
    """Messages with something more at the end of the system prompt."""
    if made and made[0].role == "system":
        return [replace(made[0], content=f"{made[0].content}\n\n{more}"), *made[1:]]
    return [Message("system", more), *made]


def in_text(call: ToolCall) -> str:
    """A call as JSON."""
    return json.dumps({"name": call.name, "arguments": _object(call.arguments)}, ensure_ascii=False)


def _object(arguments: str) -> Any:
    try:
        found = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return {"text": arguments}
    return found if isinstance(found, dict) else {"value": found}


# Kept to


def grammar(tools: Sequence[Tool], form: Form, *, parallel: bool) -> str:
    """GBNF of one call, or of several in a row, of these tools and no others."""
    shapes = [_shape(tool, form) for tool in tools]
    try:
        made = grammar_of(json.dumps({"anyOf": shapes}))
    except EngineError:
        # A schema that no grammar can be made of: any arguments then, and the client checks them.
        loose = [_shape(Tool(tool.name), form) for tool in tools]
        made = grammar_of(json.dumps({"anyOf": loose}))
    rules = re.sub(r"^root ::=", "one-call ::=", made, count=1, flags=re.MULTILINE)
    one = "one-call"
    if form.listed:
        most = MOST_CALLS - 1 if parallel else 0
        return f'root ::= "[" {one} ("," " "? {one}){{0,{most}}} "]"\n{rules}'
    if form.opens:
        one = f'{json.dumps(form.opens)} "\\n"? {one} "\\n"? {json.dumps(form.closes)}'
    more = f' ("\\n" {one}){{0,{MOST_CALLS - 1}}}' if parallel else ""
    return f"root ::= {one}{more}\n{rules}"


def schema(tools: Sequence[Tool], form: Form, other: str = "") -> str:
    """JSON Schema, in text, of one call of these tools, or of a text of another shape.

    Raises:
        EngineError: the other shape is no JSON Schema.
    """
    shapes = [_shape(tool, form) for tool in tools]
    if other:
        shape = json.loads(other)
        shapes.append(_inlined(shape, shape))
    return json.dumps({"anyOf": shapes})


def triggers(form: Form) -> tuple[str, ...]:
    """From where on the grammar holds if the model may also answer in words: see `FormedSampling.triggers`."""
    if form.opens:
        return (rf"[\s\S]*?({re.escape(form.opens)}[\s\S]*)",)
    return (r"\s*(\[[\s\S]*)",) if form.listed else (r"\s*(\{[\s\S]*)",)


def _shape(tool: Tool, form: Form) -> dict[str, Any]:
    written = _inlined(dict(tool.parameters), tool.parameters)
    parameters = dict(written) if isinstance(written, Mapping) else {}  # A reference to what is no schema.
    parameters.setdefault("type", "object")
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, form.arguments: parameters},
        "required": ["name", form.arguments],
        "additionalProperties": False,
    }


def _inlined(schema: Any, root: Mapping[str, Any]) -> Any:
    """A schema with what its references mean in their place; what goes on for ever may be anything at the end."""
    parts = 0

    def inlined(schema: Any, depth: int, level: int = 0) -> Any:
        nonlocal parts
        parts += 1
        if level > MOST_LEVELS:
            return {}
        if isinstance(schema, list):
            return [inlined(part, depth, level + 1) for part in schema]
        if not isinstance(schema, Mapping):
            return schema
        reference = schema.get("$ref")
        if isinstance(reference, str):
            found = _pointed(reference, root) if depth < DEEPEST and parts < MOST_PARTS else None
            return inlined(found, depth + 1, level + 1) if found is not None else {}
        return {
            name: inlined(part, depth, level + 1)
            for name, part in schema.items()
            if name not in ("$defs", "definitions")
        }

    return inlined(schema, 0)


def _pointed(reference: str, root: Any) -> Any:
    """What a JSON pointer such as "#/$defs/City" means; None if nothing is there."""
    if not reference.startswith("#/"):
        return None
    for step in reference[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(root, Mapping) or step not in root:
            return None
        root = root[step]
    return root
