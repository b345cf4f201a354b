"""Calls in the forms that models write them, and in those they should not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw_local.tools.base import Call
from claw_local.tools.calls import LONGEST_CALL, MOST_CALLS, calls_in

NAMES = ("read", "write", "files__find")
READ = Call("read", {"path": "a.txt"})


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "read", "arguments": {"path": "a.txt"}}\n</tool_call>',
        '<tool_call>{"name": "read", "arguments": {"path": "a.txt"}}',
        '<tool_call>{"name": "read", "arguments": "{\\"path\\": \\"a.txt\\"}"}</tool_call>',
        '<tool_call>{"name": "read", "parameters": {"path": "a.txt"},}</tool_call>',
        "<tool_call>{'name': 'read', 'arguments': {'path': 'a.txt'}}</tool_call>",
        '<tool_call>{"name": "read", "arguments": {"path": "a.txt"}</tool_call>',
        '<tool_call>{"function": {"name": "read", "arguments": {"path": "a.txt"}}}</tool_call>',
        "<tool_call>\n<function=read>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>",
        '[TOOL_CALLS] [{"name": "read", "arguments": {"path": "a.txt"}}]',
        '[TOOL_CALLS]read[ARGS]{"path": "a.txt"}',
        '{"name": "read", "parameters": {"path": "a.txt"}}',
        '<|python_tag|>{"name": "read", "parameters": {"path": "a.txt"}}',
        '```json\n{"name": "read", "arguments": {"path": "a.txt"}}\n```',
        '<think>I could call <tool_call>x</tool_call>.</think>{"name": "read", "arguments": {"path": "a.txt"}}',
    ],
)
def test_a_call_is_read_in_every_known_form(text: str) -> None:
    assert calls_in(text, NAMES) == ("", [READ])


def test_what_is_said_beside_a_call_stays_and_several_calls_keep_their_order() -> None:
    one = '<tool_call>{"name": "read", "arguments": {"path": "%s"}}</tool_call>'
    said, calls = calls_in(f"Let me look.\n{one % 'a'}\n{one % 'b'}", NAMES)
    assert said == "Let me look." and [call.arguments["path"] for call in calls] == ["a", "b"]
    assert len(calls_in(one % "a" * 40, NAMES)[1]) == MOST_CALLS


@pytest.mark.parametrize(
    "text",
    [
        "Just words.",
        '{"name": "Ada", "age": 36}',
        '{"name": "read"}',
        'Write {"name": "read", "arguments": {}} to read.',
        "[1, 2, 3]",
        "",
        "```python\nprint(1)\n```",
    ],
)
def test_an_answer_is_no_call(text: str) -> None:
    assert calls_in(text, NAMES) == (text, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<tool_call>read a.txt</tool_call>", "not understood"),
        ("<tool_call></tool_call>", "not understood"),
        (
            '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
            "There is no tool fly. There are: files__find, read",
        ),
        ('<tool_call>{"name": "read", "arguments": [1]}</tool_call>', "JSON object"),
        ('<tool_call>{"arguments": {}}</tool_call>', "no tool without a name"),
    ],
)
def test_what_is_meant_as_a_call_and_is_none_says_why(text: str, said: str) -> None:
    (call,) = calls_in(text, NAMES)[1]
    assert said in call.problem


@pytest.mark.parametrize("form", ["<tool_call>%s</tool_call>", "[TOOL_CALLS] [%s]", "%s"])
def test_a_call_that_is_too_long_says_so(form: str) -> None:
    long = json.dumps({"name": "write", "arguments": {"path": "a", "content": "x" * LONGEST_CALL}})
    said, (call,) = calls_in(form % long, NAMES)
    assert said == "" and "400,000 characters" in call.problem
    assert calls_in("x" * LONGEST_CALL + "y", NAMES)[1] == []


@given(st.text(alphabet="<>/tool_call{}[]\"':, \nname\\argumentsread", max_size=80))
def test_nothing_a_model_writes_breaks_the_reading(noise: str) -> None:
    said, calls = calls_in(f"<tool_call>{noise}", NAMES)
    assert isinstance(said, str) and 1 <= len(calls) <= MOST_CALLS
    json.dumps([call.arguments for call in calls])
