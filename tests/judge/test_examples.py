"""The shipped examples keep their promises, and files in their format are read or refused in a sentence."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from claw_local.errors import UsageError
from claw_local.judge.examples import SPLITS, Example, parse, read, scored, shipped
from claw_local.judge.filters import has_secret, is_system_talk

LANGUAGES = ("en", "zh", "de", "es", "fr", "ja")
NEAR = 0.7
"""Likeness from which two messages are the same thing said twice."""


@pytest.fixture(scope="module")
def everything() -> list[Example]:
    return [example for split in SPLITS for example in shipped(split)]


def trigrams(text: str) -> frozenset[str]:
    padded = re.sub(r"[\W_]+", " ", f" {text.lower()} ")
    return frozenset(padded[n : n + 3] for n in range(len(padded) - 2))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Dice coefficient; messages of signs alone have no trigrams and are compared as they are."""
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def test_no_situation_is_in_two_splits(everything: list[Example]) -> None:
    splits = {(example.situation, example.split) for example in everything}
    assert len(splits) == len({example.situation for example in everything})
    assert all(example.split == split for split in SPLITS for example in shipped(split))


def test_every_split_has_its_share_and_every_language_and_score(everything: list[Example]) -> None:
    assert len(everything) >= 420
    sizes = {split: len(shipped(split)) for split in SPLITS}
    assert sizes["train"] > 2000 and sizes["dev"] > 100 and sizes["test"] > 180
    languages = Counter(example.lang for example in everything)
    assert set(languages) == set(LANGUAGES)
    assert all(count >= 25 for count in languages.values())
    for split in SPLITS:
        for language in LANGUAGES:
            scores = Counter(example.score for example in shipped(split) if example.lang == language)
            assert all(scores[score] >= 0.15 * scores.total() for score in (-1, 0, 1)), (split, language, scores)


def test_ids_are_unique_and_nothing_is_said_twice(everything: list[Example]) -> None:
    assert len({example.id for example in everything}) == len(everything)
    assert len({example.next.lower().strip(" .!?") for example in everything}) == len(everything)


def test_no_message_of_dev_or_test_is_like_one_of_train_or_of_the_prompt() -> None:
    prompt = json.loads(resources.files("claw_local.data").joinpath("judge_fewshot.json").read_text("utf-8"))
    seen = [trigrams(case["next"]) for case in prompt["examples"]]
    seen += [trigrams(example.next) for example in shipped("train")]
    unseen = [example for split in ("dev", "test") for example in shipped(split) if len(example.next) > 10]
    near = [
        example.next for example in unseen if max(likeness(trigrams(example.next), other) for other in seen) >= NEAR
    ]
    assert len(unseen) > 200
    assert near == []


def test_labels_agree_with_one_another(everything: list[Example]) -> None:
    for example in everything:
        assert example.directive == bool(example.hint), example.id
        assert not (example.directive and (example.score == 0 or example.next_role == "tool")), example.id
        assert example.next_role == ("tool" if example.kind.startswith("tool_") else "user"), example.id
        assert example.question and example.reply and example.kind, example.id


def test_ideal_hints_are_short_and_in_the_persons_language_and_hold_nothing_that_a_filter_must_stop(
    everything: list[Example],
) -> None:
    directives = [example for example in everything if example.directive]
    assert len(directives) > 150
    for example in directives:
        assert len(example.hint) <= 120, example.id
        assert not has_secret(example.hint) and not is_system_talk(example.hint), example.id
        written = re.search(r"[\u3040-\u30ff\u3400-\u9fff]", example.hint) is not None
        assert written == (example.lang in ("zh", "ja")), example.id


def test_the_weather_of_the_day_after_tomorrow_is_among_them(everything: list[Example]) -> None:
    (case,) = [example for example in everything if example.next == "不对，我说的是后天"]
    assert (case.question, case.reply) == ("帮我查一下北京明天的天气", "北京明天晴")
    assert (case.score, case.directive) == (-1, True)
    assert "后天" in case.hint


def test_a_file_of_the_fewest_fields_is_read() -> None:
    (example,) = parse('\n{"id": "a", "lang": "en", "reply": "12", "next": "ok", "score": 0}\n', "mine.jsonl")
    assert example == Example("a", "en", "12", "user", "ok", 0, False)
    assert example.sort == "unknown"


def test_language_and_role_may_go_by_their_plain_names() -> None:
    line = {"language": "de", "role": "tool", "reply": "ls", "next": "leer", "score": 0, "situation": "ls", "more": 1}
    (example,) = parse(json.dumps(line), "mine.jsonl")
    assert (example.lang, example.next_role, example.sort) == ("de", "tool", "ls")
    assert example.id == "mine.jsonl, line 1"


def test_only_a_newline_ends_a_line() -> None:
    (example,) = parse('{"reply": "a", "next": "one\u2028two\x85three", "score": 1}\r\n', "mine.jsonl")
    assert example.next == "one\u2028two\x85three"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2 is not JSON"),
        ("[" * 100_000, "line 2 is not JSON"),
        ("[]", "line 2 is not a JSON object"),
        ('{"reply": "a", "score": 1}', "line 2 has no text under next"),
        ('{"reply": 4, "next": null, "score": 1}', "line 2 has no text under reply and next"),
        ('{"reply": "a", "next": "b", "score": 2}', "line 2: the score has to be -1, 0 or 1"),
        ('{"reply": "a", "next": "b", "score": true}', "line 2: the score"),
        ('{"reply": "a", "next": "b", "score": 1, "next_role": "system"}', "line 2: next_role is user or tool"),
    ],
)
def test_a_line_that_is_no_example_is_named(line: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        parse("\n" + line, "mine.jsonl")


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text('{"reply": "a", "next": "b", "score": 1}\n', "utf-8-sig")
    assert [example.next for example in read(file)] == ["b"]


def test_a_file_without_examples_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text('{"reply": "a", "next": "b", "score": 1, "split": "dev"}\n', "utf-8")
    assert [example.next for example in read(file)] == ["b"]
    assert read(file, "dev") == read(file)
    with pytest.raises(UsageError, match="no example of the split test"):
        read(file, "test")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        read(file)
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "none.jsonl")


def test_scored_examples_are_numbered_by_their_line_and_place() -> None:
    text = resources.files("claw_local.data").joinpath("judge").joinpath("scored.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    for split in ("train", "dev"):
        found = {example.id: example for example in scored(split)}
        expected = {
            f"scored-{number}-{place}": (row["question"], row["reply"], row["lang"], *said)
            for number, row in enumerate(rows, start=1)
            if row["split"] == split
            for place, said in enumerate(row["next"], start=1)
        }
        assert (
            found
            and {
                name: (one.question, one.reply, one.lang, one.score, one.kind, one.next) for name, one in found.items()
            }
            == expected
        )
        assert all(
            (one.split, one.next_role, one.directive, one.hint, one.note) == (split, "user", False, "", "")
            and one.situation == name.rpartition("-")[0]
            and one.sort == one.kind
            for name, one in found.items()
        )


def test_every_field_of_a_line_is_read() -> None:
    line = {
        "id": "a", "lang": "de", "reply": "So.", "next_role": "tool", "next": "ok", "score": -1, "directive": 1,
        "question": "How?", "hint": "No lists.", "split": "dev", "situation": "list", "kind": "tool_ok", "note": 7,
    }  # fmt: skip
    (example,) = parse(json.dumps(line), "mine.jsonl")
    assert example == Example(
        "a", "de", "So.", "tool", "ok", -1, True, "How?", "No lists.", "dev", "list", "tool_ok", "7"
    )
    assert example.sort == "tool_ok" and Example("a", "", "", "user", "", 0, False, situation="list").sort == "list"
    (bare,) = parse('{"reply": "a", "next": "b", "score": 1.0, "question": null}', "mine.jsonl")
    assert (bare.id, bare.lang, bare.question, bare.next_role) == ("mine.jsonl, line 1", "unknown", "", "user")
    assert isinstance(bare.score, int)


def test_lines_are_counted_with_the_empty_ones() -> None:
    first, second = parse('\n{"reply": "a", "next": "b", "score": 1}\n\n{"reply": "a", "next": "c", "score": 0}', "x")
    assert (first.id, second.id) == ("x, line 2", "x, line 4")
