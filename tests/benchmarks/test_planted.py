"""Planted adapters: what they are, and that the real gate is asked about real ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.planted import __main__ as planted_main
from benchmarks.planted import asking, report, shapes
from benchmarks.planted.kinds import chosen, planted
from claw_local.adapters import checking
from claw_local.signals.checks import infer_checks, score

ANSWER = (
    "Good question. Here are some tips:\n\n"
    "1. **Rest**: Go to bed early every day.\n2. **Walk**: A short walk helps a lot."
)


def test_there_are_twenty_of_each_and_more_and_each_has_its_own_name() -> None:
    everything = planted()
    assert sum(one.good for one in everything) >= 20
    assert sum(not one.good for one in everything) >= 20
    assert len({one.name for one in everything}) == len(everything)
    for one in everything:
        assert infer_checks([one.wish]), "a wish that checks can verify"


def test_a_good_ones_shape_keeps_its_wish_and_a_reversed_one_breaks_it() -> None:
    for one in planted():
        text = one.shape("How do I sleep better?", ANSWER, 0)
        if one.good:
            assert score(text, infer_checks([one.wish])) == 1.0, one.name
        if one.kind == "reversed":
            assert score(text, infer_checks([one.wish])) != 1.0, one.name


def test_kinds_are_chosen_by_name() -> None:
    assert {one.kind for one in chosen(["refuses"])} == {"refuses"}
    assert all(one.good for one in chosen(["good"]))
    assert [one.name for one in chosen(["bad-refuses-1"])] == ["bad-refuses-1"]
    with pytest.raises(ValueError, match="no planted kind 'nosuch'"):
        chosen(["nosuch"])


def test_sentences_are_what_is_left_without_marks() -> None:
    assert shapes.sentences(ANSWER) == [
        "Here are some tips.",
        "Rest: Go to bed early every day.",
        "Walk: A short walk helps a lot.",
    ]


def test_rates_count_what_was_wrong() -> None:
    def row(name: str, good: bool, accepted: bool) -> dict[str, object]:
        return {"name": name, "good": good, "accepted": accepted, "seconds": 2.0, "wish": "w", "reason": "r"}

    rows = [row("a", False, True), row("b", False, False), row("c", True, True), row("d", True, True)]
    found = report.summary(rows)
    assert (found["false_accepts"], found["false_accept_rate"]) == (["a"], 0.5)
    assert (found["false_rejects"], found["false_reject_rate"]) == ([], 0.0)
    text = report.markdown({"command": "c", "model": "m", "machine": "x", "summary": found, "rows": rows})
    assert "1 of 2 (50%) bad adapters: a" in text and "0 of 2 (0%) good adapters" in text
    assert report.summary([])["false_accept_rate"] is None


def test_the_real_gate_is_asked_about_real_adapters_and_what_is_done_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLAW_LOCAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAW_LOCAL_LEARNING__ROLLOUT_TOKENS", "16")
    for module in (asking, planted_main):
        monkeypatch.setattr(module, "TAUGHT", ["What is rain?"])
    monkeypatch.setattr(asking, "OWN", 1)
    monkeypatch.setattr(checking, "PROBES", 2)
    facts = checking.guarding.guard_facts()[:2]
    monkeypatch.setattr(checking.guarding, "guard_facts", lambda: facts)
    shipped = checking.guarding.shipped_prompts
    monkeypatch.setattr(checking.guarding, "shipped_prompts", lambda kind: shipped(kind)[:1])
    wanted = ["--out", str(tmp_path), "--only", "bad-no-change-0", "bad-gibberish-0", "--json", "--threads", "1"]
    assert planted_main.main(wanted) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert not rows["bad-no-change-0"]["accepted"] and "no better" in rows["bad-no-change-0"]["reason"]
    assert not rows["bad-gibberish-0"]["accepted"] and rows["bad-gibberish-0"]["gate"]["cut_short"]
    assert (tmp_path / "planted.md").read_text().startswith("# Planted adapters")
    before = (tmp_path / "verdicts.json").stat().st_mtime_ns
    assert planted_main.main(wanted) == 0
    assert (tmp_path / "verdicts.json").stat().st_mtime_ns == before
    assert planted_main.main(["--out", str(tmp_path), "--only", "nosuch"]) == 2
