"""`claw-local models` and `bench`, run in this process."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from claw_local.cli.main import run
from claw_local.engine.described import Descriptions
from claw_local.engine.gguf_file import DamagedGguf, read_header
from claw_local.paths import Paths
from claw_local.settings import load
from tests.engine.small_gguf import write_gguf


@pytest.fixture(autouse=True)
def _nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


def test_models_are_listed_added_used_shown_and_removed(
    home: Paths, tmp_path: Path, model_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own model.gguf"
    own.symlink_to(model_path)
    assert run(["models", "add", str(own), "--link"]) == 0
    assert "claw-local models use 'own model.gguf'" in capsys.readouterr().out
    assert run(["models", "use", "own model"]) == 0
    assert load(home).model.path == "own model.gguf"
    assert run(["models", "remove", "own model", "--yes"]) == 2
    assert "in use" in capsys.readouterr().err
    assert run(["models", "use", "embedded", "--json"]) == 0
    capsys.readouterr()
    write_gguf(home.models / "small.gguf", file_type=15)
    assert run(["models", "list"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].startswith("*  SmolLM2") and any("Q4_K_M" in line and "small" in line for line in table[1:])
    assert run(["models", "show", "small", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["model"]["chooses"], shown["context"], shown["learns"]) == ("small.gguf", 2048, True)
    assert run(["models", "show", "small"]) == 0
    assert "2,048 tokens" in capsys.readouterr().out
    assert run(["models", "remove", "small"]) == 2, "nobody is there to be asked"
    assert run(["models", "remove", "small", "--yes"]) == 0
    assert not (home.models / "small.gguf").exists() and model_path.is_file()


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (["use", "nothing-like-it"], 1, "no model nothing-like-it"),
        (["show", "nothing-like-it"], 1, "models list"),
        (["use", "ollama:"], 2, "names no model"),
        (["use", "ollama:missing"], 1, "ollama serve"),
        (["add", "no-such.gguf"], 1, "no-such.gguf"),
        (["remove", "embedded", "--yes"], 2, "pip"),
        (["pull", "nonsense"], 2, "OWNER/NAME"),
        (["pull", "someone/Nice-GGUF"], 1, "HF_HUB_OFFLINE"),
    ],
)
def test_what_cannot_be_done_is_said(
    home: Paths, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, word: str
) -> None:
    assert run(["models", *arguments]) == status
    errors = capsys.readouterr().err
    assert word in errors and "Traceback" not in errors


def test_recommendations_come_with_the_command_that_fetches_them(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["models", "list", "--recommended"]) == 0
    assert "claw-local models pull " in capsys.readouterr().out
    assert run(["models", "list", "--recommended", "--json"]) == 0
    assert {"repo", "file", "size_bytes", "why"} <= set(json.loads(capsys.readouterr().out)["recommended"][0])


def test_a_name_from_a_file_cannot_steer_the_terminal(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    home.make()
    write_gguf(home.models / "evil\x1b[2J.gguf")
    assert run(["models", "list"]) == 0
    assert run(["models", "show", "evil\x1b[2J"]) == 0
    output = capsys.readouterr()
    assert "evil[2J" in output.out and "\x1b" not in output.out


def test_what_was_removed_is_said_without_steering_the_terminal(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    home.make()
    write_gguf(home.models / "evil\x1b[2J\u202efugg\u2066.gguf")
    assert run(["models", "list", "--json"]) == 0
    listed = capsys.readouterr().out
    assert not set("\x1b\u202e\u2066") & set(listed)
    assert "evil\x1b[2J\u202efugg\u2066" in {model["name"] for model in json.loads(listed)["models"]}
    assert run(["models", "remove", "evil\x1b[2J\u202efugg\u2066", "--yes"]) == 0
    assert capsys.readouterr().out == "Removed evil[2Jfugg.gguf.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
def test_a_fifo_of_a_model_s_name_is_passed_over(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    home.make()
    os.mkfifo(home.models / "x.gguf")
    assert run(["models", "list"]) == 0
    assert "x.gguf" not in capsys.readouterr().out
    for name in ("x", "x.gguf", str(home.models / "x.gguf")):
        assert run(["models", "show", name]) == 1
    with pytest.raises(DamagedGguf, match="not a regular file"):
        read_header(home.models / "x.gguf")
    assert Descriptions(None).of(home.models / "x.gguf") is None


def test_bench_measures_the_model_in_use_and_keeps_nothing(
    home: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from claw_local.bench import measure

    # The same measurement, shorter.
    for name, value in (("PROMPT_TOKENS", (32, 48)), ("REPLY_TOKENS", 8), ("JUDGEMENTS", 1)):
        monkeypatch.setattr(measure, name, value)
    assert run(["bench", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert 32 <= seen["prompt_tokens"] <= 48 and seen["decode_tokens"] == 8
    assert all(seen[name] > 0 for name in ("load_s", "prompt_rate", "decode_rate", "first_token_s", "judge_s"))
    assert seen["swap_s"] is None, "there is no adapter to change"
    assert run(["history", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chats"] == []
