"""Calls of tools: told to a model, kept to a grammar, and read out of what it writes."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from claw_local.engine.base import FormedSampling, Prompt
from claw_local.engine.call_reader import CallReader
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.engine.prompts import PromptRenderer
from claw_local.engine.template import ChatTemplate
from claw_local.engine.tool_forms import (
    BARE,
    IN_WORDS,
    LISTED,
    TAGGED,
    Form,
    ToolSpec,
    form_of,
    grammar,
    schema,
    triggers,
)
from claw_local.engine.tool_prompts import as_functions, told_in_words
from claw_local.memory.prompt import put_hints
from claw_local.talking.asked import Said, Tool, ToolCall
from claw_local.talking.calling import messages, spec_of

UNMARKED = Form()
"""As calls come where an answer of another shape may come, too."""


def tool(name: str, description: str = "", parameters: dict[str, Any] | None = None) -> ToolSpec:
    return spec_of(Tool(name, description, parameters or {}))


TREE = tool(
    "plant",
    "Plants a tree.",
    {
        "type": "object",
        "properties": {"kind": {"$ref": "#/$defs/Kind"}, "tree": {"$ref": "#/$defs/Node"}},
        "required": ["kind"],
        "$defs": {
            "Kind": {"enum": ["oak", "elm"]},
            "Node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/Node"}}},
        },
    },
)


def test_references_in_references_do_not_multiply_without_end() -> None:
    node = {"type": "object", "properties": {f"p{n}": {"$ref": "#/$defs/Node"} for n in range(60)}}
    wide = tool("plant", "", {"type": "object", "properties": {"tree": node}, "$defs": {"Node": node}})
    began = time.perf_counter()
    assert len(schema([wide], IN_WORDS)) < 1_000_000
    assert time.perf_counter() - began < 2


def test_a_schema_may_refer_to_the_whole_of_itself() -> None:
    node = tool("plant", "", {"type": "object", "properties": {"kind": {"type": "string"}, "child": {"$ref": "#"}}})
    (call,) = json.loads(schema([node], IN_WORDS))["anyOf"]
    child = call["properties"]["arguments"]["properties"]["child"]
    assert child["properties"]["child"]["properties"]["kind"] == {"type": "string"}


def test_a_reference_to_what_is_no_schema_lets_any_arguments_through() -> None:
    odd = tool("plant", "", {"$ref": "#/$defs/Name", "$defs": {"Name": "Tree"}})
    assert "plant" in grammar([odd], IN_WORDS, parallel=False)


class Letters:
    """A tokenizer of single characters, none of which is a control token."""

    bos, adds_bos = -1, False

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        return [ord(letter) for letter in text]

    def is_control(self, token: int) -> bool:
        return False

    def is_eog(self, token: int) -> bool:
        return False

    def token_text(self, token: int) -> str:
        return chr(token)


TWO = '<tool_call>{"name":"a","arguments":{"x":"}"}}</tool_call>\n<tool_call>{"name":"b","arguments":{}}'
NONE = "1 < 2 and <tool_ <tool_call>no</tool_call> end"


def read(form: Form, text: str) -> tuple[str, list[tuple[str, str]]]:
    """What a reader makes of a text, however it is cut into pieces."""
    found = []
    for size in (1, 3, len(text) or 1):
        reader = CallReader(form)
        words = "".join(reader.push(text[start : start + size]) for start in range(0, len(text), size))
        found.append((words + reader.finish(), reader.calls))
    assert found[0] == found[1] == found[2]
    return found[0]


@pytest.mark.parametrize(
    ("form", "text", "words", "names"),
    [
        (TAGGED, 'Let me see.\n<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>', "Let me see.", ["a"]),
        (TAGGED, TWO, "", ["a", "b"]),
        (TAGGED, NONE, NONE, []),
        (TAGGED, 'x <tool_call>{"name": "a", "argu', 'x <tool_call>{"name": "a", "argu', []),
        (UNMARKED, '{"name": "a", "arguments": {}}\n{"name": "b", "arguments": {}}\nDone.', "Done.", ["a", "b"]),
        (UNMARKED, '{"colour": "red"} is JSON.', '{"colour": "red"} is JSON.', []),
        (UNMARKED, 'Say {"name": "a", "arguments": {}}', 'Say {"name": "a", "arguments": {}}', []),
        (LISTED, ' [{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}]', "", ["a", "b"]),
        (LISTED, "[1, 2]", "[1, 2]", []),
        (BARE, '{"name": "a", "parameters": {"q": "ü"}}', "", ["a"]),
        (UNMARKED, "", "", []),
        (IN_WORDS, "", "", []),
        (IN_WORDS, "<tool_call>{'name': 'a', 'arguments': {'x': 1},}</tool_call> So.", "So.", ["a"]),
        (TAGGED, "<tool_call>\n<function=a>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>", "", ["a"]),
        (TAGGED, "<tool_call><function=a>no end", "<tool_call><function=a>no end", []),
    ],
)  # fmt: skip
def test_calls_are_told_from_words(form: Form, text: str, words: str, names: list[str]) -> None:
    found, calls = read(form, text)
    assert (found, [name for name, _ in calls]) == (words, names)
    assert all(isinstance(json.loads(arguments), dict) for _, arguments in calls)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Let me see.\n<tool_call>\n", "Let me see."),
        ('<tool_call>\n{"name": "a", "arguments": {"x": "', ""),
        ("So <tool_c", "So"),
        ("a <to", "a <to"),
        ("Only words", "Only words"),
    ],
)
def test_a_call_that_was_cut_off_is_no_words(text: str, words: str) -> None:
    for size in (1, len(text)):
        reader = CallReader(TAGGED)
        said = "".join(reader.push(text[start : start + size]) for start in range(0, len(text), size))
        assert (said + reader.finish(cut=True)).rstrip() == words and not reader.calls


@pytest.mark.parametrize("form", [TAGGED, UNMARKED])
def test_a_very_long_call_is_one_and_is_read_in_no_time(form: Form) -> None:
    reader, began = CallReader(form), time.perf_counter()
    text = json.dumps({"name": "write", "arguments": {"content": "f(x) {y} [z] > 1\n" * 100_000}})
    text = f"{form.opens}{text}{form.closes}"
    words = "".join(reader.push(text[start : start + 1000]) for start in range(0, len(text), 1000)) + reader.finish()
    ((name, arguments),) = reader.calls
    assert (name, words) == ("write", "") and len(json.loads(arguments)["content"]) == 1_700_000
    assert time.perf_counter() - began < 5


def test_what_never_ends_is_no_call() -> None:
    reader = CallReader(UNMARKED)
    words = "".join(reader.push('{"name": "' + "x" * 60_000) for _ in range(3)) + reader.finish()
    assert not reader.calls and len(words) == 3 * 60_010


def test_the_form_is_the_one_the_template_teaches() -> None:
    assert form_of("<tool_call> …", True) is TAGGED
    assert form_of("[TOOL_CALLS] …", True) is LISTED
    assert form_of('{"name": …, "parameters": …}', True) is BARE
    assert form_of("<tool_call>", False) is IN_WORDS


def test_a_template_that_knows_tools_writes_tools_calls_and_results() -> None:
    template = ChatTemplate(
        "{% set end = '\\n' %}{% if tools %}TOOLS{% for tool in tools %} {{ tool.function.name }}{% endfor %}{{ end }}"
        "{% endif %}"
        "{% for m in messages %}{{ m.role }}:{{ m.content }}"
        "{% for call in m.tool_calls or [] %}<call>{{ call.function.arguments | tojson }}</call>{% endfor %}"
        "{{ end }}{% endfor %}"
    )
    said = (
        Said("user", "Plant an oak."),
        Said("assistant", "", calls=(ToolCall("1", "plant", '{"kind": "oak"}'),)),
        Said("tool", "done", call_id="1"),
    )
    made = messages(said)
    assert made[1].calls[0].arguments == {"kind": "oak"} and made[2].name == "plant"
    told = PromptRenderer(template, Letters()).render(made, 10_000, as_functions([TREE]))
    written = "".join(map(chr, told.token_ids)).splitlines()
    assert written == ["TOOLS plant", "user:Plant an oak.", 'assistant:<call>{"kind": "oak"}</call>', "tool:done"]
    in_words = told_in_words(made, [TREE], now="any")
    assert [message.role for message in in_words] == ["system", "user", "assistant", "user"]
    assert in_words[0].content.endswith("Use one of them now.")
    assert read(IN_WORDS, in_words[2].content) == ("", [("plant", '{"kind": "oak"}')])


def test_a_wish_is_the_last_thing_said_where_a_tool_has_answered_in_words() -> None:
    said = (
        Said("user", "Plant an oak."),
        Said("assistant", "", calls=(ToolCall("1", "plant", '{"kind": "oak"}'),)),
        Said("tool", "done", call_id="1"),
    )
    in_words, by_template = messages(said), messages(said)
    put_hints(in_words, ["Be brief."], in_words=True)
    last = told_in_words(in_words, [TREE])[-1]
    assert last.role == "user" and last.content == "<tool_response>\ndone\n</tool_response>\n\nBe brief."
    put_hints(by_template, ["Be brief."], in_words=False)
    assert by_template[0].content == "Plant an oak.\n\nBe brief." and by_template[-1].content == "done"


@pytest.mark.parametrize("form", [TAGGED, IN_WORDS, LISTED, BARE])
def test_the_grammar_keeps_calls_whole(engine: LlamaCppEngine, form: Form) -> None:
    prompt = Prompt(tuple(engine.tokenize("Call: ")))
    # A small model that may plant a tree in a tree does so for ever.
    whole = json.loads(TREE.parameters)
    kind = {**whole, "properties": {"kind": whole["properties"]["kind"]}}
    made = grammar([tool("plant", "", kind), tool("wait", "", {"additionalProperties": False})], form, parallel=False)
    generation, pieces = engine.generate(prompt, FormedSampling(max_tokens=80, temperature=0, grammar=made))
    words, calls = read(form, "".join(pieces))
    assert generation.finish_reason == "stop" and not words.strip()
    ((name, arguments),) = calls
    assert name in ("plant", "wait")
    assert name == "wait" or json.loads(arguments)["kind"] in ("oak", "elm")


def test_what_references_mean_stands_in_the_grammar_as_deep_as_it_is_useful() -> None:
    made = grammar([TREE], IN_WORDS, parallel=False)
    assert '("elm\\"" | "oak\\"")' in made and "tree-child-child" in made and len(made) < 20_000


def test_without_a_call_words_are_free_and_from_its_mark_on_they_are_not(engine: LlamaCppEngine) -> None:
    made = grammar([tool("wait")], TAGGED, parallel=False)
    sampling = FormedSampling(max_tokens=60, temperature=0, grammar=made, triggers=triggers(TAGGED))
    free, pieces = engine.generate(Prompt(tuple(engine.tokenize("Once upon a time"))), sampling)
    assert "".join(pieces).strip() and "<tool_call>" not in free.text
    example = '<tool_call>\n{"name": "other", "arguments": {}}\n</tool_call>\n'
    _, pieces = engine.generate(Prompt(tuple(engine.tokenize(example * 3))), sampling)
    _, calls = read(TAGGED, "".join(pieces))
    assert [name for name, _ in calls] == ["wait"], "the prompt's own tool is not among those given"
