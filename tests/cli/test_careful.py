"""Values that were given but say nothing, and names that would steer a terminal: one sentence, status 2, no control."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_local.adapters.sources import _in_words
from claw_local.cli.careful import on_one_line
from claw_local.cli.main import run
from claw_local.paths import Paths

EMPTY = (
    *("restore", "backup", "history import", "models show", "models use", "models add", "models remove", "models pull"),
    *("config get", "adapters show", "adapters use", "adapters remove", "adapters import", "history search"),
    *("history export --out", "judge explain", "serve keys remove", "tools workspace 1", "ask hello --model", "ask"),
    *("adapters use base --profile", "hints add", "learn status --model", "hints remove", "feedback 1 --edit"),
)


@pytest.mark.parametrize("nothing", ["", "  "])
@pytest.mark.parametrize("line", EMPTY)
def test_nothing_is_wrong_use_said_in_one_sentence(
    line: str, nothing: str, home: Paths, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.data.parent)
    assert run([*line.split(), nothing]) == 2
    said = capfd.readouterr()
    assert said.out == "" and said.err.strip()
    assert line == "hints remove" or said.err.count("\n") == 1
    assert not list(Path.cwd().glob(" *"))


@pytest.mark.parametrize("line", ["models show", "config get", "restore", "history import", "serve keys remove"])
def test_a_name_that_would_steer_the_terminal_is_shown_harmless(
    line: str, home: Paths, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([*line.split(), "two\nlines\x1b[31m"]) in (1, 2)
    said = capfd.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and r"two\nlines\x1b[31m" in said.err


def test_what_is_empty_on_purpose_stays_allowed(home: Paths, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "set", "model.system", ""]) == 0
    assert run(["adapters", "rename", "nobody", ""]) == 1  # There is none; no name would be fine.
    assert "nobody" in capfd.readouterr().err


def test_only_what_was_typed_is_put_on_one_line() -> None:
    assert on_one_line("First.\nThe file a\nb is gone.", ["show", "--out=a\nb"]) == "First.\nThe file a\\nb is gone."


def test_a_short_name_of_a_source_is_not_taken_for_letters_of_the_sentence() -> None:
    said = _in_words("adapter_config.json is not in it", Path("."), Path("/nowhere"))
    assert "adapter_config.json is not in it" in said
