"""`uninstall`: says what is where, removes what lies outside the package, and never touches data without a yes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from claw_local import installed
from claw_local.cli.main import run
from claw_local.engine.described import KNOWN_FILE
from claw_local.engine.models import HASHES_FILE
from claw_local.installed import OTHER_FILES
from claw_local.leftovers import NOTES
from claw_local.paths import Paths
from claw_local.store import Store

ROOT = Path(__file__).parents[2]


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of somebody who installed everything there is. Its systemd only writes down what it is told: the
    real one would act on whoever runs the tests."""
    user = tmp_path / "user"
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/asked"\n', "utf-8")
    (tools / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("HOME", str(user))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in (
        ".bash_completions/claw-local.sh",
        ".zfunc/_claw-local",
        ".local/share/applications/local.claw.ClawLocal.desktop",
        ".local/share/man/man1/claw-local-ask.1",
        ".local/share/man/man1/other.1",
        ".config/systemd/user/claw-local-learn.timer",
        ".config/systemd/user/claw-local-learn.service",
        ".config/systemd/user/other.timer",
    ):
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        (user / name).write_text("x", "utf-8")
    wants = user / ".config/systemd/user/timers.target.wants"
    wants.mkdir()
    (wants / "claw-local-learn.timer").symlink_to("../claw-local-learn.timer")
    (user / "dotfiles").write_text(
        f"alias ll='ls -l'\n\nsource '{user}/.bash_completions/claw-local.sh'\nexport EDITOR=vi\n", "utf-8"
    )
    (user / ".bashrc").symlink_to("dotfiles")
    return user


@pytest.fixture
def kept(home: Paths) -> Paths:
    """A home with a chat, a model and a file that is not ours."""
    store = Store(home)
    store.chats.create(title="Tea")
    store.close()
    (home.models / "some.gguf").write_bytes(b"x" * 1000)
    home.settings.write_text("", "utf-8")
    (home.data / "thesis.odt").write_text("mine", "utf-8")
    (home.data / NOTES).mkdir(exist_ok=True)
    return home


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def plan(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    assert run(["uninstall", "--json", *options]) == 0
    said: dict[str, object] = json.loads(capsys.readouterr().out)
    return said


def test_every_file_that_the_program_makes_beside_the_others_is_told_as_its_own() -> None:
    assert {HASHES_FILE, KNOWN_FILE, NOTES} <= set(OTHER_FILES)


def test_looking_changes_nothing(user: Path, kept: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(user) | files(kept.data)
    said = plan(capsys, "--dry-run")
    assert files(user) | files(kept.data) == before
    kinds = [piece["kind"] for piece in said["outside"]]  # type: ignore[attr-defined]
    assert sorted(kinds) == [
        *("desktop entry", "line of the shell's start", "man page", "schedule", "schedule", "schedule"),
        *("shell completion", "shell completion"),
    ]
    data = said["data"]
    assert isinstance(data, dict)
    assert [Path(entry).name for entry in data["others"]] == ["thesis.odt"]
    assert data["bytes"] > 1000


def test_a_yes_alone_keeps_the_data(user: Path, kept: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(kept.data)
    said = plan(capsys, "--yes")
    assert len(said["removed"]) == 8  # type: ignore[arg-type]
    assert said["data_deleted"] is False
    assert files(kept.data) == before
    assert files(user) == {
        *(".bashrc", "dotfiles", ".local/share/man/man1/other.1", ".config/systemd/user/other.timer"),
    }
    assert not (user / ".bash_completions").exists()
    # What else stood in the shell's start stays, and the link to it too.
    assert (user / ".bashrc").is_symlink()
    assert (user / "dotfiles").read_text("utf-8") == "alias ll='ls -l'\nexport EDITOR=vi\n"
    asked_of_systemd = (user.parent / "asked").read_text("utf-8").splitlines()
    assert {"--user disable --now claw-local-learn.timer", "--user stop claw-local-learn.service"} <= {
        *asked_of_systemd
    }
    assert plan(capsys, "--dry-run")["outside"] == []


def test_data_goes_when_it_is_said_outright_and_what_is_not_ours_stays(
    user: Path, kept: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(capsys, "--yes", "--delete-data")["data_deleted"] is True
    assert files(kept.data) == {"thesis.odt"}
    assert run(["uninstall", "--yes", "--delete-data"]) == 0
    assert "Your data: none" in capsys.readouterr().out


def test_a_learning_run_that_goes_on_stops_it(user: Path, kept: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(kept)
    store.runs.begin()
    assert run(["uninstall", "--yes", "--delete-data"]) == 1
    assert "A learning run is going on." in capsys.readouterr().err
    assert "claw-local.db" in files(kept.data)
    assert len(files(user)) > 4


def test_without_a_terminal_and_a_yes_nothing_is_done(
    user: Path, kept: Paths, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115
    before = files(user) | files(kept.data)
    assert run(["uninstall"]) == 2
    assert "There is no terminal to ask. Add --yes" in capsys.readouterr().err
    assert run(["uninstall", "--json"]) == 2
    assert run(["uninstall", "--keep-data", "--delete-data"]) == 2
    assert files(user) | files(kept.data) == before


def asked(kept: Paths, *answers: str) -> str:
    """What is said in a terminal, with these answers typed."""
    ours, theirs = pty.openpty()
    os.write(ours, "".join(f"{answer}\n" for answer in answers).encode())
    search = os.pathsep.join(str(ROOT / part) for part in (".", "app", "trainer"))
    done = subprocess.run(
        [sys.executable, "-m", "claw_local", "uninstall"],
        env={**os.environ, "PYTHONPATH": search, "CLAW_LOCAL_HOME": str(kept.data)},
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(ours), os.close(theirs)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_in_a_terminal_it_asks_and_the_data_needs_a_word(user: Path, kept: Paths) -> None:
    before = files(user)
    assert "Your data stays in" in asked(kept, "n", "y", "yes")
    assert files(user) == before
    assert "Your data is deleted." in asked(kept, "y", "y", "delete")
    assert files(kept.data) == {"thesis.odt"}
    assert ".zfunc/_claw-local" not in files(user)


def test_how_the_package_goes_is_said_for_each_way_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def way(name: str = "", **variables: str) -> str:
        prefix = tmp_path / "venvs" / "claw-local"
        prefix.mkdir(parents=True, exist_ok=True)
        if name:
            (prefix / name).write_text("", "utf-8")
        said = installed.package(variables, prefix).remove
        if name:
            (prefix / name).unlink()
        return said

    assert way("pipx_metadata.json") == "pipx uninstall claw-local"
    assert way("uv-receipt.toml") == "uv tool uninstall claw-local"
    assert way("claw-local-stamp.json").startswith(f"delete the folder {tmp_path}")
    assert way(FLATPAK_ID="local.claw.ClawLocal") == "flatpak uninstall local.claw.ClawLocal"
    assert way(CLAW_LOCAL_CONTAINER="1") == "docker image rm claw-local"
    cellar = installed.package({}, Path("/opt/homebrew/Cellar/claw-local/0.1.0/libexec"))
    assert cellar.remove == "brew uninstall claw-local"
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert way() == f"delete the folder {Path(sys.executable).parent}"
