"""Tools as a model is told of them, the forms in which models write calls, and the grammar that keeps to one.

It must never know what a tool does, nor who asks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..errors import EngineError
from .grammar import grammar_of

OPEN, CLOSE = "<tool_call>", "</tool_call>"
"""What stands around a call: Hermes' form, which Qwen and many others were trained with."""
MOST_CALLS = 8
"""Calls of one reply: a small model that has begun may never stop."""
DEEPEST = 4
"""How often a schema may be put into itself."""
MOST_PARTS = 4000
"""Parts that a schema may have once its references are written out; further ones may be anything."""
MOST_LEVELS = 80
"""Objects and lists inside each other; what is deeper may be anything."""
LONGEST_GRAMMAR = 60_000
"""Characters. Larger ones make each token of a call slow to draw."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool as a model is told of it. `parameters`: JSON Schema of the object it takes, as JSON text."""

    name: str
    description: str = ""
    parameters: str = "{}"


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


IN_WORDS = Form(OPEN, CLOSE)
"""What a model is told whose template knows no tools."""
TAGGED = Form(OPEN, CLOSE, own=True)
"""Hermes, Qwen and many more."""
LISTED = Form(own=True, listed=True)
"""Mistral. The mark before it is a control token, which is no text."""
BARE = Form(arguments="parameters", own=True)
"""Llama 3."""


def form_of(template: str, takes_tools: bool) -> Form:
    """The form a chat template teaches."""
    if not takes_tools:
        return IN_WORDS
    if OPEN in template:
        return TAGGED
    if "[TOOL_CALLS]" in template:
        return LISTED
    return BARE if '"parameters"' in template or "python_tag" in template else TAGGED


def triggers(form: Form) -> tuple[str, ...]:
    """From where on the grammar holds if the model may also answer in words: see `FormedSampling.triggers`."""
    if form.opens:
        return (rf"[\s\S]*?({re.escape(form.opens)}[\s\S]*)",)
    return (r"\s*(\[[\s\S]*)",) if form.listed else (r"\s*(\{[\s\S]*)",)


def grammar(tools: Sequence[ToolSpec], form: Form, *, parallel: bool) -> str:
    """GBNF of one call, or of several in a row, of these tools and no others; "" if none can be made.

    A tool whose parameters make no grammar, or too large a one, may be called with any object: whoever runs it looks.
    """
    return _grammar(tuple(tools), form, parallel)


@lru_cache(maxsize=16)
def _grammar(tools: tuple[ToolSpec, ...], form: Form, parallel: bool) -> str:
    if not tools:
        return ""
    for exact in (tools, ()):
        shapes = [_shape(tool, form, exact=tool in exact and _makes_grammar(tool, form)) for tool in tools]
        try:
            made = grammar_of(json.dumps({"anyOf": shapes} if len(shapes) > 1 else shapes[0]))
        except EngineError:
            continue
        if len(made) <= LONGEST_GRAMMAR:
            break
    else:
        return ""
    rules = re.sub(r"^root ::=", "one-call ::=", made, count=1, flags=re.MULTILINE)
    one = "one-call"
    if form.listed:
        most = MOST_CALLS - 1 if parallel else 0
        return f'root ::= "[" {one} ("," " "? {one}){{0,{most}}} "]"\n{rules}'
    if form.opens:
        one = f'{json.dumps(form.opens)} "\\n"? {one} "\\n"? {json.dumps(form.closes)}'
    more = f' ("\\n" {one}){{0,{MOST_CALLS - 1}}}' if parallel else ""
    return f"root ::= {one}{more}\n{rules}"


def schema(tools: Sequence[ToolSpec], form: Form, other: str = "") -> str:
    """JSON Schema, in text, of one call of these tools, or of a text of another shape.

    Raises:
        EngineError: the other shape is no JSON Schema.
    """
    shapes = [_shape(tool, form, exact=True) for tool in tools]
    if other:
        shape = json.loads(other)
        shapes.append(_inlined(shape, shape))
    return json.dumps({"anyOf": shapes})


def _makes_grammar(tool: ToolSpec, form: Form) -> bool:
    try:
        return len(grammar_of(json.dumps(_shape(tool, form, exact=True)))) <= LONGEST_GRAMMAR // 4
    except EngineError:
        return False


def _shape(tool: ToolSpec, form: Form, *, exact: bool) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    if exact:
        said = json.loads(tool.parameters)
        written = _inlined(said, said)
        parameters = dict(written) if isinstance(written, Mapping) else {}  # A reference to what is no schema.
    parameters.setdefault("type", "object")
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, form.arguments: parameters},
        "required": ["name", form.arguments],
        "additionalProperties": False,
    }


def _inlined(schema: Any, root: Any) -> Any:
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
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    for step in reference[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(root, Mapping) or step not in root:
            return None
        root = root[step]
    return root
