"""Backups: whole while others write, and the way back to the same or another home."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from claw_local.adapters.registry import verify
from claw_local.backup import Backup, look, restore, tables, unpacking, write_backup
from claw_local.cli.main import app
from claw_local.errors import BackupError, RestoredError, UsageError
from claw_local.paths import Paths, locate
from claw_local.store import Store, opening

from .homes import fill, titles

ROOT = Path(__file__).parents[2]


def test_a_backup_comes_back_in_another_home_with_everything(backed: tuple[Store, Backup], tmp_path: Path) -> None:
    _, made = backed
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert made.left_out == ()
    assert look(made.path).counts == {"chats": 1, "messages": 1, "hints": 1, "adapters": 1}
    other = locate(tmp_path / "other")
    done = restore(other, made.path)
    assert done.before is None
    assert titles(other) == ["old"]
    store = Store(other)
    record = store.adapters.active("m")
    assert record is not None
    verify(record)
    assert Path(record.gguf_path).is_relative_to(other.adapters)
    assert Path(json.loads(store.flags.get("judge.own.m"))["path"]).read_bytes() == b"judge"
    assert other.settings.read_text() == '[app]\ntheme = "mine"\n'
    assert (other.themes / "mine.toml").read_text() == "# old\n"
    assert [hint.text for hint in store.hints.list()] == ["old hint"]
    store.messages.add(1, "user", "it goes on", parent_id=1)
    assert [entry.name for entry in other.data.iterdir() if entry.name.startswith(".")] == []


def test_restoring_is_seen_by_open_programs_and_what_was_there_is_kept(
    backed: tuple[Store, Backup], home: Paths
) -> None:
    store, made = backed
    store.chats.update(1, title="newer")
    store.chats.create(title="since then")
    newer = home.adapters / "run-2-newer"
    newer.mkdir()
    (newer / "adapter.gguf").write_bytes(b"newer")
    store.adapters.add(parent_id=1, model_sha256="m", architecture="llama", gguf_path=str(newer / "adapter.gguf"))
    home.settings.write_text('[app]\ntheme = "other"\n')
    done = restore(home, made.path)
    assert [chat.title for chat in store.chats.list()] == ["old"], "the store that was open all the time"
    with pytest.raises(RestoredError):
        store.messages.add(1, "user", "into a chat it took for another", parent_id=1)
    store.database.accept()
    store.messages.add(1, "user", "and then it can write", parent_id=1)
    assert done.before is not None
    kept = sqlite3.connect(done.before / "claw-local.db")
    assert {title for (title,) in kept.execute("select title from chats")} == {"newer", "since then"}
    assert (done.before / "settings.toml").read_text() == '[app]\ntheme = "other"\n'
    assert (done.before / "adapters" / "run-2-newer" / "adapter.gguf").is_file()
    assert {entry.name for entry in home.adapters.iterdir()} == {"run-1-old", "judge"}
    assert home.settings.read_text() == '[app]\ntheme = "mine"\n'
    assert store.database.db.execute("pragma integrity_check").fetchone() == ("ok",)


def test_an_adapter_of_the_same_name_with_other_content_is_kept_apart(
    backed: tuple[Store, Backup], home: Paths
) -> None:
    store, made = backed
    (home.adapters / "run-1-old" / "adapter.gguf").write_bytes(b"something else")
    done = restore(home, made.path)
    record = store.adapters.active("m")
    assert record is not None and Path(record.gguf_path).read_bytes() == b"old" * 1000
    assert done.before is not None
    assert (done.before / "adapters" / "run-1-old" / "adapter.gguf").read_bytes() == b"something else"


def test_a_backup_is_whole_while_another_program_writes(home: Paths, tmp_path: Path) -> None:
    store = fill(home, "busy")
    script = f"""
import sys
from claw_local.paths import locate
from claw_local.store import Store, opening
from claw_local.store.database import Database
from claw_local.store.migrations import MIGRATIONS
store = Store(locate({str(home.data)!r}))
print("ready", flush=True)
n = 0
while True:
    with store.database.write():  # Two rows that belong together.
        chat = store.chats.create(title=f"pair {{n}}")
        store.messages.add(chat.id, "user", f"pair {{n}}", parent_id=None)
    n += 1
"""
    writer = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None and writer.stdout.readline()
        sizes = []
        for n in range(4):
            made = write_backup(store, home, tmp_path / f"{n}.backup")
            other = locate(tmp_path / f"home-{n}")
            restore(other, made.path)
            again = Store(other)
            with again.database.read() as db:
                chats = {title for (title,) in db.execute("select title from chats where title like 'pair %'")}
                said = {text for (text,) in db.execute("select content from messages where content like 'pair %'")}
                assert db.execute("pragma integrity_check").fetchone() == ("ok",)
            again.close()
            assert chats == said
            sizes.append(len(chats))
    finally:
        writer.kill()
        writer.wait()
    assert sizes == sorted(sizes) and sizes[-1] > sizes[0], "it wrote all the time"


def test_an_adapter_that_is_removed_meanwhile_is_no_harm(
    home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from claw_local.backup import writing

    store = fill(home, "old")
    add, done = writing._add, []

    def removing(archive: zipfile.ZipFile, name: str, path: Path) -> object:
        if not done and name.endswith("adapter.gguf"):
            done.append(name)
            store.adapters.update(1, gguf_path="", peft_dir="", state="retired")
            path.unlink()
        return add(archive, name, path)

    monkeypatch.setattr(writing, "_add", removing)
    made = write_backup(store, home, tmp_path / "my.backup")
    assert done
    assert not any(name.endswith("run-1-old/adapter.gguf") for name in made.manifest.files)
    other = locate(tmp_path / "other")
    restore(other, made.path)
    assert Store(other).adapters.get(1).gguf_path == ""


def test_where_there_is_no_room_for_the_backup_its_own_disk_is_named(
    backed: tuple[Store, Backup], home: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = opening.connect

    def small(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.execute("pragma max_page_count = 1")
        return connection

    monkeypatch.setattr(tables, "opening", SimpleNamespace(connect=small))
    with pytest.raises(BackupError, match=r"written to .*another\.backup"):
        write_backup(backed[0], home, tmp_path / "another.backup")
    assert not (tmp_path / "another.backup").exists()


def test_where_there_is_no_room_to_restore_small_sizes_are_told_too(
    backed: tuple[Store, Backup], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking.shutil, "disk_usage", lambda folder: SimpleNamespace(free=4096))
    with pytest.raises(BackupError, match=r"takes up to \d.*[kM]B, and 4.1 kB are free"):
        restore(locate(tmp_path / "other"), backed[1].path)


def test_commands_ask_refuse_and_print_json(backed: tuple[Store, Backup], home: Paths, tmp_path: Path) -> None:
    run = CliRunner().invoke
    target = tmp_path / "another.backup"
    made = run(app, ["backup", str(target), "--json"])
    assert json.loads(made.stdout)["counts"]["chats"] == 1
    again = run(app, ["backup", str(target)])
    assert again.exit_code == 2 and "--force" in again.output
    assert run(app, ["backup", str(target), "--force"]).exit_code == 0
    assert run(app, ["backup", str(tmp_path)]).exit_code == 2
    nowhere = run(app, ["backup", str(tmp_path / "none" / "x")])
    assert nowhere.exit_code == 1 and "cannot be written" in nowhere.output
    asked = run(app, ["restore", str(target)])
    assert asked.exit_code == 2 and "add --yes" in asked.output
    assert run(app, ["restore", str(tmp_path / "none")]).exit_code == 1
    assert "Restored: 1 chat, 1 message, 1 hint, 1 adapter." in run(app, ["restore", str(target), "--yes"]).output
    with pytest.raises(UsageError):
        write_backup(backed[0], home, target)


def test_a_backup_is_never_written_over_what_is_in_use(backed: tuple[Store, Backup], home: Paths) -> None:
    store, made = backed
    for target in (home.database, home.settings):
        before = target.read_bytes()
        with pytest.raises(UsageError, match="in use"):
            write_backup(store, home, target, force=True)
        assert target.read_bytes() == before
    link = made.path.with_name("link")
    link.symlink_to(home.database)
    with pytest.raises(UsageError, match="in use"):
        write_backup(store, home, link, force=True)
    link.unlink()
    link.symlink_to(made.path)
    write_backup(store, home, link, force=True)
    assert link.is_symlink() and look(made.path).counts["chats"] == 1
    pipe = made.path.with_name("pipe")
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="no regular file"):
        write_backup(store, home, pipe, force=True)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
