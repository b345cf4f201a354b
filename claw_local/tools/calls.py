"""Calls in a whole reply, checked against the tools there are. It must never carry one out.

Read are: Hermes' marks (Qwen, SmolLM and what is held to our grammar), Qwen-Coder's XML within them, Mistral's
[TOOL_CALLS], and a bare JSON call as Llama 3 writes it. What is meant to be a call and is none becomes a problem in
words, for the model to read.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ..engine.call_reader import Called, called, objects, read_calls
from ..engine.tool_forms import CLOSE, MOST_CALLS, OPEN
from .base import Call

LONGEST_CALL = 400_000

_THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_MARKED = re.compile(rf"{OPEN}(.*?)(?:{CLOSE}|(?={OPEN})|\Z)", re.DOTALL)
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*(.*)\Z", re.DOTALL)
_BEGUN = re.compile(rf"{OPEN}|\[TOOL_CALLS\]|\A\s*\[?\s*{{\s*\"name\"")
_FENCE = re.compile(r"\A```(?:json|tool_call|tool_code)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL)
_BARE = re.compile(r"\A(?:<\|python_tag\|>)?\s*([\[{].*)\Z", re.DOTALL)


def calls_in(text: str, names: Collection[str]) -> tuple[str, list[Call]]:
    """What was said beside calls, and the calls. `names`: the tools there are."""
    said = _THOUGHTS.sub("", text)
    if len(said) > LONGEST_CALL:
        begun = _BEGUN.search(said)
        if begun is None:
            return text, []
        problem = f"The call is longer than {LONGEST_CALL:,} characters, so nothing was done. Do it in several."
        return said[: begun.start()].strip(), [Call("", problem=problem)]
    marked = _MARKED.findall(said)
    if marked:
        calls = [call for body in marked for call in _read(body, names)]
        return _MARKED.sub("", said).strip(), calls[:MOST_CALLS]
    if mistral := _MISTRAL.search(said):
        return said[: mistral.start()].strip(), _read(mistral[1], names)[:MOST_CALLS]
    whole = said.strip()
    if fenced := _FENCE.match(whole):
        whole = fenced[1]
    if bare := _BARE.match(whole):
        found = objects(bare[1])
        # An answer may be JSON, too: only what names a tool there is, and says with what, is a call.
        if found and all(called(one)[0] in names and _says_with_what(one) for one in found):
            return "", [_checked(called(one), names) for one in found][:MOST_CALLS]
    return text, []


def _read(body: str, names: Collection[str]) -> list[Call]:
    """The calls between two marks: one at least, which may be a problem."""
    problem = 'The call was not understood. Write it as {"name": "NAME", "arguments": {…}}, in JSON.'
    return [_checked(one, names) for one in read_calls(body)] or [Call("", problem=problem)]


def _checked(said: Called, names: Collection[str]) -> Call:
    name, arguments = said
    if name not in names:
        there = ", ".join(sorted(names))
        return Call(name, problem=f"There is no tool {name or 'without a name'}. There are: {there}.")
    if not isinstance(arguments, dict):
        return Call(name, problem=f"The arguments of {name} have to be a JSON object.")
    return Call(name, arguments)


def _says_with_what(said: dict[str, object]) -> bool:
    inner = said.get("function")
    return any(key in (inner if isinstance(inner, dict) else said) for key in ("arguments", "parameters"))
