"""The long life: its bookkeeping. The life itself takes hours."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from benchmarks import drift
from claw_local.adapters.peft import PeftLora, write_peft
from claw_local.memory.fast import replaces


def test_wishes_change_from_run_to_run_and_mean_the_same_in_all_their_words() -> None:
    for wish in drift.WISHES:
        assert wish.checks
        assert all(replaces(wish.words[0], words) or replaces(words, wish.words[0]) for words in wish.words)
    for run in range(20):
        assert drift.wish_of(run) != drift.wish_of(run + 1)
    families = [{check.family for check in wish.checks} for wish in drift.WISHES]
    assert any(a & b for a, b in itertools.combinations(families, 2)), "some undo what an earlier one asked for"
    assert len(drift.prompts()) >= 60


def test_a_life_goes_on_from_where_it_was(tmp_path: Path) -> None:
    life = drift.Life(tmp_path / "drift.json")
    assert (life.rows, life.asked) == ([], 0)
    life.asked, life.corrected = 3, 2
    life.keep()
    again = drift.Life(tmp_path / "drift.json")
    assert (again.rows, again.asked, again.corrected) == ([], 3, 2)


def test_the_size_of_an_adapter_is_the_norm_of_its_update(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 6)).astype(np.float32), random.standard_normal((5, 2)).astype(np.float32)
    write_peft(PeftLora(4.0, {(0, "self_attn.v_proj"): (a, b)}), tmp_path / "peft")
    assert drift.norm(tmp_path / "peft") == pytest.approx(float(np.linalg.norm(2.0 * b @ a)), rel=1e-3)


def test_the_last_run_stands_beside_the_first() -> None:
    def row(run: int, known: float) -> dict[str, object]:
        guard = {"known_after": known, "declined_after": 0.125, "kl_base": 0.1 * run, "lean_after": 0.0}
        return {
            "run": run,
            "wish": "w",
            "corrected": 9,
            "accepted": True,
            "seconds": 200.0,
            "norm": 1.0 * run,
            "guard": guard,
            "base": {"known_before": 0.8, "declined_before": 0.25},
        }

    text = drift.markdown({"command": "c", "machine": "m", "rows": [row(1, 0.75), row(2, 0.6875)]})
    assert "| simple facts known | 80% | 75% | 69% |" in text
    assert "| distance from the base | 0 | 0.100 | 0.200 |" in text
    assert "| size of the adapter | 0 | 1.00 | 2.00 |" in text


def test_wrong_use_is_said_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert drift.main(["--out", str(tmp_path), "--runs", "0"]) == 2
    assert "at least 1" in capsys.readouterr().err
