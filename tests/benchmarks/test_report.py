"""What rows come down to: means, spreads, hopes, a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.personas import report


def row(method: str, seed: int, after: float, **changes: Any) -> dict[str, Any]:
    return {
        "method": method,
        "seed": seed,
        "rate_before": 0.2,
        "rate_with_hints": 0.5,
        "rate_after": after,
        "words_before": 100.0,
        "words_after": 80.0,
        "repetition_before": 0.0,
        "repetition_after": 0.0,
        "length_ratio": 0.8,
        "quiz_before": 70.0,
        "quiz_after": 69.0,
        "quiz_change": -1.0,
        "judge_right": 1.0,
        "turns": 12,
        "corrected": 9,
        "accepted": True,
        "reason": "Taken: closer | better.",
        "steps": 3,
        "practice": [-0.5, None, 0.5],
        "seconds": {"load": 1.0, "learn": 200.0},
        **changes,
    }


def whole(rows: list[dict[str, Any]]) -> dict[str, Any]:
    summary = report.summarise(rows)
    return {
        "persona": "brief",
        "who": "Someone.",
        "command": "python -m benchmarks.personalize",
        "model": "tiny",
        "machine": "2 cores",
        "tokens": 200,
        "turns": 12,
        "seeds": [0, 1],
        "held_out": 26,
        "answers_each": 1,
        "aim": 0.9,
        "summary": summary,
        "hopes": report.hopes(summary, aim=0.9, about_length=False),
        "runs": rows,
    }


def test_mean_and_standard_deviation_are_over_the_seeds_of_a_method() -> None:
    summary = report.summarise([row("combined", 0, 0.8), row("combined", 1, 1.0), row("opd", 0, 0.6)])
    assert summary["combined"]["rate_after"] == {"mean": 0.9, "spread": pytest.approx(0.1414, abs=1e-4)}
    assert summary["opd"]["rate_after"] == {"mean": 0.6, "spread": None}
    assert summary["combined"]["learn_s"]["mean"] == 200.0


def met(rows: list[dict[str, Any]], *, about_length: bool = False) -> dict[str, bool]:
    found = report.hopes(report.summarise(rows), aim=0.9, about_length=about_length)
    return {hope["what"]: hope["met"] for hope in found}


def test_what_was_hoped_for_is_judged_by_its_bounds() -> None:
    good = met([row("combined", 0, 0.9)])
    assert all(good.values())
    bad = met([row("combined", 0, 0.89, rate_with_hints=0.3, length_ratio=0.6, quiz_change=-2.5)])
    assert not any(found for what, found in bad.items() if "seconds" not in what)
    assert "length of answers, of before" not in met([row("combined", 0, 0.9)], about_length=True)


def test_combined_is_held_against_each_single_method() -> None:
    found = met([row("combined", 0, 0.9), row("opd", 0, 0.95), row("binary-rl", 0, 0.5)])
    assert not found["combined, beside opd"]
    assert found["combined, beside binary-rl"]


def test_the_table_has_each_method_each_seed_and_the_paper_s_figures() -> None:
    refused = row("opd", 1, 0.2, accepted=False, reason="Not taken: worse.", rate_refused=0.75)
    text = report.markdown(whole([row("combined", 0, 0.8), row("combined", 1, 1.0), refused]))
    assert "| combined | 0.20 ± 0.00 | 0.50 ± 0.00 | **0.90 ± 0.14** | 100 ± 0 → 80 ± 0 |" in text
    assert "| 0 of 1 |" in text and "it would have kept the wish in 0.75" in text
    assert r"closer \| better" in text, "a reason must not break the table"
    assert "0.17" in text and "0.81" in text


def test_a_reversed_wish_has_a_table_of_its_own() -> None:
    part = {"rate_before": 0.1, "rate_with_hints": 0.4, "rate_after": 0.95}
    text = report.markdown(whole([row("combined", 0, 0.9, reversed=part)]))
    assert "| combined | 0.10 | 0.40 | 0.95 |" in text
    assert "| reversed wish, learned | ≥ 0.90 | 0.95 | met |" in text


@pytest.mark.parametrize("practice", [[-0.5, None, 0.5], [None, None], []])
def test_the_learning_curve_is_drawn_with_and_without_practice(tmp_path: Path, practice: list[float | None]) -> None:
    pytest.importorskip("matplotlib")
    rows = [row("combined", 0, 0.9, practice=practice), row("opd", 0, 0.5, practice=practice, steps=0)]
    report.draw(whole(rows), tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_step_without_a_score_is_left_out_of_the_curve() -> None:
    assert report._curve([-0.5, None, 0.5]) == ([0, 2], [-0.5, 0.5])
    assert report._mean_curve([[0.0, None], [1.0, None, 0.5]]) == ([0, 2], [0.5, 0.5])
