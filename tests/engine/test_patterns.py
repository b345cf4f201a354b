"""Patterns, limits and references of a schema, as llama.cpp keeps to them: JSON comes, and it fits."""

from __future__ import annotations

import json
import re
import string
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw_local.engine.grammar import MOST_OPTIONAL, ShapeError, grammar_of
from claw_local.engine.tool_forms import IN_WORDS, ToolSpec, grammar

from .keeping import Keeping

_keeping: list[Keeping] = []


@pytest.fixture(scope="module", autouse=True)
def keeping(model_path: Path) -> Iterator[Keeping]:
    found = Keeping(model_path)
    _keeping.append(found)
    yield found
    _keeping.remove(found)
    found.close()


def fits(schema: dict[str, Any], value: Any) -> bool:
    return _keeping[0].accepts(grammar_of(json.dumps(schema)), json.dumps(value, ensure_ascii=False))


def kept(pattern: str, text: str) -> bool:
    return fits({"type": "string", "pattern": pattern}, text)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ('^"hi"$', ['"hi"'], ["hi", '"hi', '""hi""']),
        ("^.{1,8}$", ["a", '"', "\\", "ü\t😀", "\x00" * 8], ["", "123456789", "a\nb", "\u2028"]),
        ("^C:\\\\x$", ["C:\\x"], ["C:x", "C:\\\\x"]),
        (r"^\d{5}$", ["12345"], ["1234", "123456", "1234a"]),
        (r"^\w+$", ["aZ_9"], ["", "a b", "a-b"]),
        (r"^a\sb$", ["a b", "a\tb", "a\nb"], ["ab", "a  b"]),
        (r"^[\w-]+$", ["a-b_c"], ["a b", ""]),
        (r"^[a-z]+\.[a-z]+$", ["a.b"], ["ab", "a.", "a.B"]),
        (r'^[^"a]$', ["b", "\\", "\n"], ['"', "a", ""]),
        (r"^[\D]\S[\s\W]$", ["ab ", "--\n"], ["1a ", "a b", "abc"]),
        ("b", ["b", "abc", "\nb\n"], ["", "a"]),
        ("^a|b$", ["a", "ax", "xb"], ["xa", "bx"]),
        ("^(a|b$)", ["ax", "b"], ["bx", "xa"]),
        ("^(?:ab?|c){2,3}$", ["aab", "cc", "ababab"], ["a", "b", "cccc"]),
        ("^(a*b?)*$", ["", "aab", "bba"], ["c"]),
        ("^((a?b?)*c?)+d$", ["d", "abcd", "ccabd"], ["", "abc"]),
        ("^(?<year>[0-9]{4})?$", ["", "2026"], ["202"]),
        ("^\\u00fc\\x41\\/\\-\\{[\\b]{$", ["üA/-{\b{"], ["uA/-{\b{"]),
        ("^$", [""], ["a"]),
    ],
)
def test_a_pattern_takes_what_it_means_and_nothing_else(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [text for text in yes if not kept(pattern, text)] == []
    assert [text for text in no if kept(pattern, text)] == []


def test_however_many_ways_a_pattern_leaves_it_is_kept_to_in_no_time() -> None:
    began = time.perf_counter()
    for pattern in (f"^({'a?' * 60})*$", "^((((a*b?)*a?)*b?)*a?)*$", "^(a|a|aa)*$", "^(a{1,9}){1,9}$"):
        assert kept(pattern, "a" * 40) and not kept(pattern, "a" * 40 + "c"), pattern
        assert len(grammar_of(json.dumps({"type": "string", "pattern": pattern}))) < 5000
    assert time.perf_counter() - began < 5


def test_a_call_keeps_to_the_patterns_of_its_tool() -> None:
    shape = {"type": "object", "properties": {"said": {"type": "string", "pattern": '^"hi"$'}}, "required": ["said"]}
    made = grammar([ToolSpec("say", "", json.dumps(shape))], IN_WORDS, parallel=False)
    call = '<tool_call>{"name": "say", "arguments": {"said": %s}}</tool_call>'
    assert _keeping[0].accepts(made, call % json.dumps('"hi"'))
    assert not _keeping[0].accepts(made, call % '""hi""') and not _keeping[0].accepts(made, call % '"hi"')


_CHARS = st.sampled_from([*'ab"\\\n1- ', "ü"])
_ESCAPES = st.sampled_from([r"\d", r"\w", r"\s", r"\W", r"\.", ".", r"[^a-c]", r"[\d\"b-]", r"[^\s\\]"])


def _more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    grouped = inner.map(lambda one: f"(?:{one})")
    return st.one_of(
        st.lists(inner, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(grouped, st.sampled_from(["?", "*", "+", "{2}", "{0,2}", "{1,}"])).map("".join),
    )


_PATTERNS = st.recursive(st.one_of(_CHARS.map(re.escape), _ESCAPES), _more, max_leaves=8)
_TEXTS = st.text(st.sampled_from([*'ab"\\\n1- .cü\t']), max_size=6)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_patterns_agree_with_pythons(data: st.DataObject) -> None:
    pattern = data.draw(_PATTERNS)
    compiled = re.compile(rf"(?:{pattern})\Z", re.ASCII)
    whole = f"^(?:{pattern})$"
    fitting = st.from_regex(compiled, fullmatch=True, alphabet=st.sampled_from([*string.printable, "ü", "😀"]))
    for text in (data.draw(_TEXTS), data.draw(fitting)):
        assert kept(whole, text) == bool(compiled.match(text)), (whole, text)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "is not closed"),
        ("[a", "is not closed"),
        ("a)", "closes nothing"),
        ("*a", "nothing for"),
        ("[z-a]", "backwards"),
        ("a{3,2}", "backwards"),
        ("\\", "backslash"),
        (r"(a)\1", "reference to a group"),
        ("(?=a)b", "look ahead"),
        ("(?<!a)b", "look behind"),
        (r"\bword\b", "word boundary"),
        ("x^y", "only where it begins"),
        ("^(a{99}){99}$", "too long"),
        ("a{1000}", "no further than 99"),
        ("[]", "fits no text"),
        ("^(.*a.{20}){3}$", "too intricate"),
        ("^((((a{0,9}){0,9}b?){0,9}){0,9})*$", "too long"),
        ("(" * 80 + ")" * 80, "inside each other"),
    ],
)
def test_what_cannot_be_kept_to_is_refused_in_a_plain_sentence(pattern: str, why: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(why)) as found:
        grammar_of(json.dumps({"type": "string", "pattern": pattern}))
    assert str(found.value).endswith(".") and "Error" not in str(found.value)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(-3000, 3000), st.integers(0, 1500), st.data())
def test_whole_numbers_keep_within_their_limits(low: int, more: int, data: st.DataObject) -> None:
    high = low + more
    value = data.draw(st.one_of(st.integers(low - 20, high + 20), st.sampled_from([low - 1, low, high, high + 1])))
    assert fits({"type": "integer", "minimum": low, "maximum": high}, value) == (low <= value <= high)
    beyond = {"type": "integer", "exclusiveMinimum": low - 0.5, "exclusiveMaximum": high + 1}
    assert fits(beyond, value) == (low <= value <= high)


def test_limits_on_one_side_and_limits_that_leave_nothing() -> None:
    at_least = {"type": "integer", "minimum": 7}
    assert fits(at_least, 7) and fits(at_least, 10**15) and not fits(at_least, 6) and not fits(at_least, -7)
    below = {"type": "integer", "exclusiveMaximum": 0}
    assert fits(below, -1) and not fits(below, 0) and not fits(below, 5)
    assert not fits({"type": "number", "minimum": 0}, -0.5) and fits({"type": "number", "minimum": 0}, 0.5)
    with pytest.raises(ShapeError, match="exclude each other"):
        grammar_of('{"type": "integer", "minimum": 3, "maximum": 2}')


TREE = {"type": "object", "properties": {"v": {"type": "integer"}, "kids": {"type": "array"}}, "required": ["v"]}


@pytest.mark.parametrize("reference", ["#", "#/$defs/string"])
def test_a_shape_may_stand_within_itself(reference: str) -> None:
    node = json.loads(json.dumps(TREE))
    node["properties"]["kids"]["items"] = {"$ref": reference}
    shape = node if reference == "#" else {"$ref": reference, "$defs": {"string": node}}
    deep = {"v": 1, "kids": [{"v": 2, "kids": [{"v": 3, "kids": [{"v": 4, "kids": [{"v": 5}]}]}]}, {"v": 6}]}
    assert fits(shape, deep) and not fits(shape, {"v": 1, "kids": [{"v": "two"}]})


@pytest.mark.parametrize(
    "shape", [{"$ref": "#"}, {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}]
)
def test_a_shape_that_only_refers_to_itself_is_refused(shape: dict[str, Any]) -> None:
    with pytest.raises(ShapeError, match="without end"):
        grammar_of(json.dumps(shape))


def _optional(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{n}": {"type": "integer"} for n in range(count)}}


def test_what_may_be_left_out_costs_as_much_as_there_is_of_it() -> None:
    half, whole = (grammar_of(json.dumps(_optional(count))) for count in (MOST_OPTIONAL // 2, MOST_OPTIONAL))
    assert len(whole) < 2.2 * len(half)
    shape = _optional(MOST_OPTIONAL)
    for value in ({}, {"p0": 1}, {"p99": 1}, {"p3": 1, "p7": 2, "p98": 3}):
        assert fits(shape, value), value
    assert not fits(shape, {"p7": 1, "p3": 2}) and not fits(shape, {"q": 1})
    with pytest.raises(ShapeError, match="900 properties"):
        grammar_of(json.dumps(_optional(900)))
    some = {**_optional(3), "required": ["p1"], "additionalProperties": {"type": "boolean"}}
    for value in ({"p1": 1}, {"p1": 1, "p0": 2}, {"p1": 1, "p2": 3, "x": True, "y": False}):
        assert fits(some, value), value
    assert not fits(some, {"p0": 1}) and not fits(some, {"p1": 1, "x": 2})


def test_values_that_begin_alike_and_kinds_that_are_several() -> None:
    values = ["red", "reds", "green", "grey", 12, None, "12"]
    assert all(fits({"enum": values}, value) for value in values)
    assert not any(fits({"enum": values}, value) for value in ("re", "gre", 1, "x"))
    either = {"type": ["string", "null"], "enum": ["a", None]}
    assert fits(either, None) and fits(either, "a") and not fits(either, "b")
    maybe = {"type": ["string", "null"], "pattern": "^a$"}
    assert fits(maybe, None) and not fits(maybe, "b")


def test_lists_count_and_anything_is_anything() -> None:
    pair = {"type": "array", "items": {}, "minItems": 2, "maxItems": 3}
    assert [fits(pair, [1] * count) for count in range(5)] == [False, False, True, True, False]
    assert fits(pair, ["a", {"b": [None]}]) and not fits({"type": "array", "items": {}, "maxItems": 0}, [1])
    assert fits({"type": "array", "items": {}}, []) and fits({"type": "array", "items": True, "minItems": 1}, [1, 2, 3])
    day = {"type": "string", "format": "date"}
    assert fits(day, "2026-11-30") and not fits(day, "2026-13-30")
    assert not _keeping[0].accepts(grammar_of('{"type": "string"}'), '"a\nb"'), "no JSON: a line's end is escaped"
