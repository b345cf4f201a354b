"""What belongs to claw-local itself is written over by nothing that writes where a person says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claw_app.screens.export import write
from claw_local import Assistant
from claw_local.cli.main import app
from claw_local.cli.packs import Format
from claw_local.errors import UsageError
from claw_local.paths import Paths
from claw_local.targets import check_target


@pytest.fixture
def lived_in(home: Paths) -> Paths:
    home.make()
    for name in ("claw-local.db", "settings.toml", "models/m.gguf", "adapters/1/adapter.gguf", "mine/x.md", "note.txt"):
        file = home.data / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"kept")
    return home


@pytest.mark.parametrize(
    "name",
    [
        *("claw-local.db", "claw-local.db-wal", "claw-local.db.encrypted", "settings.toml", "mcp.json", "note.txt"),
        *("models/m.gguf", "adapters/1/adapter.gguf", "adapters/new", "runs/1.json", "caches/2.kv", "themes/x.toml"),
        *("models", "adapters", "", "mine/../claw-local.db", ".anything"),
    ],
)
def test_nothing_of_the_home_may_be_written_over(lived_in: Paths, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"in use by|in the folder of claw-local itself"):
        check_target(lived_in.data / name, lived_in)
    link = tmp_path / "link"
    link.symlink_to(lived_in.data / name)
    with pytest.raises(UsageError, match="claw-local itself"):
        check_target(link, lived_in)


def test_new_files_and_folders_of_the_persons_own_are_free(lived_in: Paths, tmp_path: Path) -> None:
    for name in ("mine/x.md", "mine/new.md", "mine", "new.md", "models/new.gguf", "backups/today.backup"):
        check_target(lived_in.data / name, lived_in)
    check_target(tmp_path / "elsewhere.md", lived_in)


def test_what_links_in_the_home_lead_to_is_in_use_too(lived_in: Paths, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    lived_in.settings.rename(tmp_path / "dotfiles" / "settings.toml")
    lived_in.settings.symlink_to(tmp_path / "dotfiles" / "settings.toml")
    (tmp_path / "big.gguf").write_bytes(b"model")
    (lived_in.models / "big.gguf").symlink_to(tmp_path / "big.gguf")
    lived_in.adapters.rename(tmp_path / "disk")
    lived_in.adapters.symlink_to(tmp_path / "disk")
    for name in ("dotfiles/settings.toml", "big.gguf", "disk/1/adapter.gguf", "disk/new", "disk"):
        with pytest.raises(UsageError, match="claw-local itself"):
            check_target(tmp_path / name, lived_in)
    check_target(tmp_path / "dotfiles" / "other.toml", lived_in)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs and no /dev")
def test_what_is_no_file_is_refused_but_for_what_the_process_was_given(lived_in: Paths, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for nowhere in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(UsageError, match="no regular file"):
            check_target(nowhere, lived_in, streams=True)
    check_target(Path("/dev/stdout"), lived_in, streams=True)
    with pytest.raises(UsageError, match="no regular file"):
        check_target(Path("/dev/stdout"), lived_in)


@pytest.mark.parametrize(
    "words",
    [
        ["history", "export", "1", "--out", "HERE", "--force"],
        *(["adapters", "export", "1", "HERE", "--force", "--format", form] for form in Format),
        ["adapters", "merge", "1", "HERE", "--force"],
        ["backup", "HERE", "--force"],
    ],
    ids=" ".join,
)
def test_nothing_that_writes_touches_the_database_even_with_force(home: Paths, words: list[str]) -> None:
    with Assistant.open() as assistant:
        assistant.new_chat(title="kept")
        assistant.store.adapters.add(parent_id=0, model_sha256="m", architecture="llama", lineage=[])
    done = CliRunner().invoke(app, [str(home.database) if word == "HERE" else word for word in words])
    assert done.exit_code == 2 and "in use by claw-local itself" in done.output
    assert home.database.read_bytes().startswith(b"SQLite")


def test_nor_does_the_app(home: Paths) -> None:
    with Assistant.open() as assistant:
        chat = assistant.new_chat(title="kept").id
        for file in (home.database, home.settings):
            with pytest.raises(UsageError, match="claw-local itself"):
                write(assistant, "markdown", chat, file)
        assert home.database.read_bytes().startswith(b"SQLite") and not home.settings.exists()
