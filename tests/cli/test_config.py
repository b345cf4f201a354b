"""`claw-local config`, run in this process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from claw_local.cli.main import run
from claw_local.paths import Paths
from claw_local.settings import load
from claw_local.store import Store

ROOT = Path(__file__).parents[2]


def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    """An editor that does `body` to the text of the file it is given."""
    script = tmp_path / "editor.py"
    before = "import sys, pathlib\nfile = pathlib.Path(sys.argv[1])\ntext = file.read_text()\n"
    script.write_text(f"{before}{body}\nfile.write_text(text)\n")
    monkeypatch.setenv("VISUAL", f'"{sys.executable}" "{script}"')


def test_an_empty_theme_is_told_as_the_one_in_use(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "get", "app.theme"]) == 0
    assert capsys.readouterr().out == "claw-dark\n"
    assert run(["config", "set", "app.theme", "claw-light"]) == 0
    capsys.readouterr()
    assert run(["config", "get", "app.theme"]) == 0
    assert capsys.readouterr().out == "claw-light\n"


def test_a_setting_is_read_written_and_reset(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "set", "sampling.temperature", "0.3"]) == 0
    assert "0.3" in capsys.readouterr().out
    assert run(["config", "get", "sampling.temperature"]) == 0
    assert capsys.readouterr().out == "0.3\n"
    assert run(["config", "get", "sampling.temperature", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["value"], told["default"], told["origin"]) == (0.3, 0.7, "file")
    assert run(["config", "list", "--changed", "--json"]) == 0
    assert [one["key"] for one in json.loads(capsys.readouterr().out)["settings"]] == ["sampling.temperature"]
    assert run(["config", "set", "sampling.temperature", "--default"]) == 0
    assert load(home).sampling.temperature == 0.7


def test_a_negative_number_is_a_value_not_an_option(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    for typed in (["-1"], ["--", "-1"], ["-1", "--json"]):
        assert run(["config", "set", "model.gpu_layers", *typed]) == 0
        assert load(home).model.gpu_layers == -1
        assert run(["config", "set", "model.gpu_layers", "--default"]) == 0
    assert run(["config", "set", "model.gpu_layers", "--defualt"]) == 2


def test_the_list_says_what_each_setting_means(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "list"]) == 0
    shown = capsys.readouterr().out
    assert "sampling.top_k" in shown and "likeliest tokens" in shown


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_on_a_terminal_the_list_fits_its_width(
    home: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    assert run(["config", "set", "model.system", "Wide words: 日本語 " + "and many of them " * 20]) == 0
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run(["config", "list"]) == 0
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capsys.readouterr().out.splitlines()]
    assert max(map(cell_len, lines)) < columns
    assert "sampling.top_k = 40" in lines
    assert any(line.startswith("model.system = ") and line.endswith("…") for line in lines)
    assert any(line.startswith("    ") and "set in the file" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["get", "sampling.temprature"], "Did you mean sampling.temperature"),
        (["set", "sampling.temperature", "hot"], "from 0 to 5"),
        (["set", "sampling.temperature"], "--default"),
        (["set", "sampling.temperature", "1", "--default"], "--default"),
        (["set", "openai.api_key", "sk-1"], "never kept"),
    ],
)
def test_wrong_use_is_said_with_status_2(
    home: Paths, capsys: pytest.CaptureFixture[str], arguments: list[str], word: str
) -> None:
    assert run(["config", *arguments]) == 2
    output = capsys.readouterr()
    assert word in output.err and output.out == ""
    assert not home.settings.exists()


def test_a_variable_that_goes_before_the_file_is_mentioned(
    home: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAW_LOCAL_LEARNING__STEPS", "3")
    assert run(["config", "set", "learning.steps", "4"]) == 0
    assert "CLAW_LOCAL_LEARNING__STEPS" in capsys.readouterr().err


def test_the_path_is_printed_before_there_is_a_file(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "path"]) == 0
    assert capsys.readouterr().out.strip() == str(home.settings)


def test_the_editor_s_text_is_kept_when_it_is_valid(
    home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    editor(monkeypatch, tmp_path, "text = text.replace('# top_k = 40', 'top_k = 7')")
    assert run(["config", "edit"]) == 0
    assert load(home).sampling.top_k == 7
    editor(monkeypatch, tmp_path, "")
    assert run(["config", "edit"]) == 0
    assert "Nothing was changed" in capsys.readouterr().out


def test_the_editor_s_text_is_not_kept_when_it_is_not_valid(
    home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    editor(monkeypatch, tmp_path, "text = text.replace('# top_k = 40', 'top_k = -7')")
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert run(["config", "edit"]) == 1
    errors = capsys.readouterr().err
    assert "sampling.top_k" in errors and "Nothing was changed" in errors
    assert not home.settings.exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[app]\ntheme = 'claw-lihgt'", "There is no theme claw-lihgt. There are: "),
        ("[openai]\napi_key = 'sk-1'", "There is no setting openai.api_key: secrets are never kept"),
    ],
)
def test_the_editor_s_text_is_refused_where_config_set_refuses(
    home: Paths,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    said: str,
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    editor(monkeypatch, tmp_path, f"text = {line!r}")
    assert run(["config", "edit"]) == 1
    errors = capsys.readouterr().err
    assert said in errors and "Nothing was changed" in errors
    assert not home.settings.exists()


def test_a_theme_that_is_gone_does_not_keep_you_from_editing_the_rest(
    home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.make()
    home.settings.write_text("[app]\ntheme = 'was-here'\n")
    editor(monkeypatch, tmp_path, "text += '[sampling]\\ntop_k = 7\\n'")
    assert run(["config", "edit"]) == 0
    assert load(home).sampling.top_k == 7
    editor(monkeypatch, tmp_path, "text = text.replace('was-here', 'nord')")
    assert run(["config", "edit"]) == 0
    assert load(home).app.theme == "nord"


@pytest.mark.skipif(os.name == "nt", reason="terminals are played with a pty")
def test_at_a_terminal_an_invalid_text_may_be_edited_again(home: Paths, tmp_path: Path) -> None:
    import pty

    script = tmp_path / "editor.py"
    # The first time it writes something wrong, the second time it mends it.
    script.write_text(
        "import sys, pathlib\nfile = pathlib.Path(sys.argv[1])\ntext = file.read_text()\n"
        "text = text.replace('# top_k = 40', 'top_k = -7') if 'top_k = -7' not in text"
        " else text.replace('top_k = -7', 'top_k = 7')\nfile.write_text(text)\n"
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "claw_local", "config", "edit"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in (".", "app", "trainer")),
            "VISUAL": f'"{sys.executable}" "{script}"',
        },
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while b"again" not in shown:
        shown += os.read(ours, 1000)
    os.write(ours, b"y\n")
    assert process.wait(timeout=30) == 0
    os.close(ours)
    assert load(home).sampling.top_k == 7


def test_an_editor_that_cannot_be_started_is_named(
    home: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VISUAL", "no-such-editor --wait")
    assert run(["config", "edit"]) == 2
    assert "no-such-editor" in capsys.readouterr().err


def test_an_editor_that_leaves_a_folder_changes_nothing(
    home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    editor(monkeypatch, tmp_path, "file.unlink(); file.mkdir(); sys.exit()")
    assert run(["config", "edit"]) == 1
    assert "it is a folder. Nothing was changed." in capsys.readouterr().err
    assert not home.settings.exists()


def test_a_profile_must_be_there_to_be_set(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "set", "adapters.profile", "nope"]) == 2
    assert "There is no profile 'nope'." in capsys.readouterr().err
    store = Store(home)
    store.flags.set("profile.work.abc", "0")
    store.close()
    assert run(["config", "set", "adapters.profile", "nope"]) == 2
    assert run(["config", "set", "adapters.profile", "work"]) == 0


def test_what_turns_the_direction_of_a_text_is_not_printed(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    for value in ("a\u202eb", "a\x1b[31mb"):
        assert run(["config", "set", "model.system", value]) == 0
        assert run(["config", "get", "model.system"]) == 0
        out = capsys.readouterr().out
        assert "\u202e" not in out and "\x1b" not in out


def test_a_theme_that_does_not_exist_is_refused_and_one_of_your_own_taken(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "set", "app.theme", "claw-lihgt"]) == 2
    said = capsys.readouterr().err
    assert "There is no theme claw-lihgt" in said and "claw-light" in said and "nord" in said
    assert load(home).app.theme == ""
    home.themes.mkdir(parents=True)
    (home.themes / "sea.toml").write_text('primary = "#58a6ff"', "utf-8")
    (home.themes / "odd.toml").write_text('primary = "blurple"', "utf-8")
    assert run(["config", "set", "app.theme", "odd"]) == 2
    assert "blurple" in capsys.readouterr().err
    for name in ("sea", "claw-light", "nord"):
        assert run(["config", "set", "app.theme", name]) == 0
        assert load(home).app.theme == name
    assert run(["config", "set", "app.theme", ""]) == 0
    assert load(home).app.theme == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask", "hi", "--temperature", "hot"], "'--temperature': it takes a number from 0 to 5, not 'hot'."),
        (["ask", "hi", "--top-k", "1.5"], "'--top-k': it takes a whole number from 0, not '1.5'."),
        (["ask", "hi", "--temperature", "9"], "'--temperature': it takes a number from 0 to 5, not '9'."),
        (["history", "export", "--all", "--format", "pdf"], "'--format': it takes md or json, not 'pdf'."),
        (["history", "archive", "1", "two"], "it takes a whole number, not 'two'."),
    ],
)
def test_what_an_option_cannot_be_is_said_in_one_plain_sentence(
    home: Paths, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(arguments) == 2
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert words in said
    assert "Input should" not in said and "Value error" not in said


def test_a_file_s_wrong_value_is_said_in_plain_words(home: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    home.make()
    home.settings.write_text("[model]\ncontext = 3\n")
    assert run(["config", "list"]) == 1
    assert "The setting model.context is not valid: it takes a number from 512. Mend it" in capsys.readouterr().err
