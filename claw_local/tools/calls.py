"""Calls in what a model wrote, whatever form its template taught it. It must never carry one out.

Read are: Hermes' marks (Qwen, SmolLM and what is held to our grammar), Qwen-Coder's XML within them, Mistral's
[TOOL_CALLS], and a bare JSON call as Llama 3 writes it. What is meant to be a call and is none becomes a problem in
words, for the model to read.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection
from typing import Any

from ..engine.tool_prompts import CLOSE, OPEN
from .base import Call

MOST_CALLS = 8
"""Calls of one reply that are carried out; what is beyond them is left out."""
LONGEST_CALL = 400_000

_THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_MARKED = re.compile(rf"{OPEN}(.*?)(?:{CLOSE}|(?={OPEN})|\Z)", re.DOTALL)
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*(.*)\Z", re.DOTALL)
_MISTRAL_NAMED = re.compile(r"([\w.-]+)\s*(?:\[ARGS\])?\s*(\{.*)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)\s*>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)\s*>\n?(.*?)\n?(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)
_FENCE = re.compile(r"\A```(?:json|tool_call|tool_code)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL)
_BARE = re.compile(r"\A(?:<\|python_tag\|>)?\s*([\[{].*)\Z", re.DOTALL)


def calls_in(text: str, names: Collection[str]) -> tuple[str, list[Call]]:
    """What was said beside calls, and the calls. `names`: the tools there are."""
    said = _THOUGHTS.sub("", text)
    if len(said) > LONGEST_CALL:
        return text, []
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
        found = _objects(bare[1])
        # An answer may be JSON, too: only what names a tool there is, and says with what, is a call.
        if found and all(_name(one) in names and _has_arguments(one) for one in found):
            return "", [_call(one, names) for one in found][:MOST_CALLS]
    return text, []


def _read(body: str, names: Collection[str]) -> list[Call]:
    """The calls between two marks: one at least, which may be a problem."""
    body = body.strip()
    functions = _FUNCTION.findall(body)
    if functions:
        return [
            _call({"name": name, "arguments": {key: _value(text) for key, text in _PARAMETER.findall(inner)}}, names)
            for name, inner in functions
        ]
    found = _objects(body)
    if found:
        return [_call(one, names) for one in found]
    named = _MISTRAL_NAMED.match(body)
    if named and named[1] in names and (arguments := _objects(named[2])):
        return [_call({"name": named[1], "arguments": arguments[0]}, names)]
    return [Call("", problem='The call was not understood. Write it as {"name": "NAME", "arguments": {…}}, in JSON.')]


def _call(said: dict[str, Any], names: Collection[str]) -> Call:
    inner = said.get("function")
    said = inner if isinstance(inner, dict) else said
    name, arguments = _name(said), said.get("arguments", said.get("parameters", {}))
    if isinstance(arguments, str):
        found = _objects(arguments)
        arguments = found[0] if found else None
    if name not in names:
        there = ", ".join(sorted(names))
        return Call(name, problem=f"There is no tool {name or 'without a name'}. There are: {there}.")
    if not isinstance(arguments, dict):
        return Call(name, problem=f"The arguments of {name} have to be a JSON object.")
    return Call(name, arguments)


def _name(said: dict[str, Any]) -> str:
    inner = said.get("function")
    name = inner.get("name") if isinstance(inner, dict) else said.get("name", inner)
    return name.strip()[:200] if isinstance(name, str) else ""


def _has_arguments(said: dict[str, Any]) -> bool:
    inner = said.get("function")
    return any(key in (inner if isinstance(inner, dict) else said) for key in ("arguments", "parameters"))


def _objects(text: str) -> list[dict[str, Any]]:
    """The JSON objects a text consists of: one, an array of them, or one after the other. Empty if it is no such."""
    text = text.strip()
    found: list[dict[str, Any]] = []
    decoder = json.JSONDecoder(strict=False)
    try:
        while text:
            value, end = decoder.raw_decode(text)
            found += value if isinstance(value, list) else [value]
            text = text[end:].lstrip(" \t\r\n,;")
    except (ValueError, RecursionError):
        if not found:
            mended = _mended(text)
            found = mended if isinstance(mended, list) else [mended]
    return found if found and all(isinstance(one, dict) for one in found) else []


def _mended(text: str) -> Any:
    """What small models make of JSON: trailing commas, Python's quotes, a brace forgotten at the end."""
    for tried in (re.sub(r",\s*([}\]])", r"\1", text), text + "}", text + "}}"):
        try:
            return json.loads(tried, strict=False)
        except (ValueError, RecursionError):
            pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _value(text: str) -> Any:
    """A parameter of the XML form: JSON where it is a number, a list or the like, else the text as it stands."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, str) else value
