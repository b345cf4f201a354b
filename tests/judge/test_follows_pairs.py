"""The shipped pairs of the second question: labels that hold, and nothing but the wish that tells the answer."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from claw_local.judge.evaluation import auc_of
from claw_local.signals.checks import Check, infer_checks

ROOT = Path(__file__).parents[2]
SPLITS = ("train", "dev", "test")
FIELDS = {"id", "split", "wish", "seen", "source", "question", "hint", "reply", "follows"}


def pairs(split: str) -> list[dict[str, Any]]:
    text = resources.files("claw_local.data").joinpath("judge").joinpath(f"follows-{split}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def everything() -> dict[str, list[dict[str, Any]]]:
    return {split: pairs(split) for split in SPLITS}


def test_there_are_enough_of_every_source_and_none_is_there_twice(everything: dict[str, list[dict[str, Any]]]) -> None:
    rows = [row for split in SPLITS for row in everything[split]]
    assert all(set(row) == FIELDS for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)
    assert len({(row["hint"], row["reply"]) for row in rows}) == len(rows)
    sources = Counter(row["source"] for row in rows)
    assert sources["written"] >= 150 and sources["sampled"] >= 80 and sources["edited"] >= 900


def test_labels_are_those_of_the_checks(everything: dict[str, list[dict[str, Any]]]) -> None:
    wishes = tomllib.loads((ROOT / "benchmarks" / "follows" / "wishes.toml").read_text("utf-8"))["wish"]
    checks = {wish["name"]: Check(*wish["check"]) for wish in wishes}
    checked = 0
    for split in SPLITS:
        for row in everything[split]:
            if row["source"] == "written":
                certain = [check for check in infer_checks([row["hint"]]) if not check.rough]
                assert not certain or row["wish"] in ("german", "spanish", "french"), row["hint"]
                continue
            assert checks[row["wish"]] in infer_checks([row["hint"]]), row["hint"]
            assert checks[row["wish"]].passes(row["reply"]) == row["follows"], row["id"]
            checked += 1
    assert checked > 1000


@pytest.mark.parametrize("split", SPLITS)
def test_neither_length_nor_subject_nor_wish_tells_the_answer(
    everything: dict[str, list[dict[str, Any]]], split: str
) -> None:
    rows = everything[split]
    words = [[len(row["reply"].split()) for row in rows if row["follows"] is label] for label in (True, False)]
    auc = auc_of([float(n) for n in words[0]], [float(n) for n in words[1]])
    assert auc is not None and abs(auc - 0.5) < 0.05
    for name in ("wish", "question"):
        counts = Counter((row[name], row["follows"]) for row in rows)
        for key in {row[name] for row in rows}:
            yes, no = counts[key, True], counts[key, False]
            assert abs(yes - no) <= (0 if name == "wish" else 0.3 * (yes + no)), (key, yes, no)


def test_the_test_knows_wishes_wordings_questions_and_replies_that_train_does_not(
    everything: dict[str, list[dict[str, Any]]],
) -> None:
    train, test = everything["train"], everything["test"]
    for name in ("hint", "question", "reply"):
        assert not {row[name] for row in train} & {row[name] for row in test}, name
    seen = {row["wish"] for row in train}
    assert all(row["seen"] is (row["wish"] in seen) for row in test)
    unseen = {row["wish"] for row in test if not row["seen"]}
    assert len(unseen) >= 6 and {"expert", "french"} < unseen
