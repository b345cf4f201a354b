"""`python -m benchmarks`: lists and runs what there is; the quick ones give their figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main, programs

ROOT = Path(__file__).parent.parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(str(ROOT / part) for part in (".", "app", "trainer"))
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def figures(*arguments: str) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_program_is_listed_with_what_it_measures(capsys: pytest.CaptureFixture[str]) -> None:
    known = programs()
    assert {"decode", "first_light", "planted", "training", "weights"} <= known.keys()
    assert "sidebyside" not in known and "__main__" not in known
    assert all(len(words) > 20 for words in known.values())
    assert main([]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in known)
    assert main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out) == known


def test_an_unknown_name_is_wrong_use_and_the_nearest_one_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decod"]) == 2
    assert "Did you mean decode?" in capsys.readouterr().err


def test_starting_is_measured_up_to_the_moment_a_model_loads(model_path: Path) -> None:
    found = figures("startup", "--rounds", "3")
    seconds = found["seconds"]
    assert 0 < seconds["python"] < seconds["ask"]
    assert 0 < seconds["version"] < seconds["ask"]  # A few milliseconds over Python alone: less than noise.
    assert found["ask_more_s"] == pytest.approx(seconds["ask"] - seconds["python"], abs=1e-3)


def test_a_small_store_is_measured_beside_sqlite() -> None:
    found = figures("store", "--messages", "400", "--rounds", "5")
    assert found["messages"] >= 400
    assert all(value > 0 for part in ("search_p95_ms", "chat_list_p95_ms") for value in found[part].values())


def test_a_small_import_is_measured_beside_ijson() -> None:
    found = figures("importing", "--mb", "1")
    assert found["chats"] > 10 and found["ratio"] > 1 and found["peak_mb"] > 10
