"""The moment a backup takes the place of what is here: all of it or nothing, whatever else is going on."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claw_local.backup import Backup, restore, switching, write_backup
from claw_local.cli.main import app
from claw_local.errors import BackupError
from claw_local.paths import Paths, locate
from claw_local.store import Store
from claw_local.store.database import Database
from claw_local.store.migrations import MIGRATIONS

from .homes import fill, titles, tree


@pytest.mark.parametrize("step", ["_place_adapters", "_fit_database", "_place_files", "_switch_database"])
def test_a_restore_that_fails_half_way_puts_everything_back(
    backed: tuple[Store, Backup], home: Paths, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store, made = backed
    store.chats.update(1, title="as it was")
    home.settings.write_text('[app]\ntheme = "other"\n')
    (home.adapters / "run-1-old" / "adapter.gguf").write_bytes(b"something else")
    before = tree(home)
    real = getattr(switching.Switch, step)

    def failing(self: object, *arguments: object) -> None:
        if step != "_switch_database":
            real(self, *arguments)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(switching.Switch, step, failing)
    with pytest.raises(BackupError, match="all is as it was"):
        restore(home, made.path)
    assert tree(home) == before
    assert titles(home) == ["as it was"]
    assert home.settings.read_text() == '[app]\ntheme = "other"\n'


def test_a_damaged_database_makes_room_for_the_backup(backed: tuple[Store, Backup], home: Paths) -> None:
    store, made = backed
    store.close()
    for file in home.data.glob("claw-local.db*"):
        file.write_bytes(b"this is no database any more, and long enough to be looked at" * 50)
    done = restore(home, made.path)
    assert titles(home) == ["old"]
    assert done.before is not None
    assert (done.before / "claw-local.db").read_bytes().startswith(b"this is no database")


def test_receipts_of_what_was_forgotten_since_stay(backed: tuple[Store, Backup], home: Paths) -> None:
    from claw_local.forgetting import Forgetting, Request

    store, made = backed
    Forgetting(store, home).forget(Request(containing="old question"))
    said = CliRunner().invoke(app, ["restore", str(made.path), "--yes", "--json"])
    assert json.loads(said.stdout)["forgotten_since"] == 1
    assert len(Forgetting(store, home).receipts()) == 1


def test_keys_that_were_removed_since_let_nobody_in_again(home: Paths, tmp_path: Path) -> None:
    store = fill(home, "old")
    for name in ("laptop", "phone"):
        store.keys.add(name, f"secret of the {name}", learn=False)
    made = write_backup(store, home, tmp_path / "keys.backup")
    store.keys.remove("phone")
    restore(home, made.path)
    assert store.keys.find("secret of the laptop") is not None and store.keys.find("secret of the phone") is None
    store.database.accept()
    store.keys.add("phone again", "secret of the phone", learn=False)
    again = write_backup(store, home, tmp_path / "again.backup")
    restore(home, again.path)
    assert store.keys.find("secret of the phone") is not None, "the person took it once more"
    other = locate(tmp_path / "elsewhere")
    restore(other, made.path)
    with contextlib.closing(Store(other)) as there:
        assert [key.name for key in there.keys.list()] == ["laptop", "phone"], "nothing was removed there"
    store.close()


def test_nothing_is_restored_while_something_is_learned(backed: tuple[Store, Backup], home: Paths) -> None:
    store, made = backed
    store.runs.begin()
    with pytest.raises(BackupError, match="learning run"):
        restore(home, made.path)


def test_a_run_of_the_home_the_backup_is_of_does_not_go_on_here(
    backed: tuple[Store, Backup], home: Paths, tmp_path: Path
) -> None:
    store, _ = backed
    store.runs.begin()
    made = write_backup(store, home, tmp_path / "while.backup")
    other = locate(tmp_path / "other")
    restore(other, made.path)
    there = Store(other)
    assert there.runs.running() is None
    assert [run.state for run in there.runs.list()] == ["failed"]
    assert store.runs.running() is not None
    there.close()


def test_a_reply_that_was_being_written_stays_as_far_as_it_was_shown(home: Paths, tmp_path: Path) -> None:
    store = fill(home, "old")
    _, reply = store.messages.begin_turn(1, "Tell me a story.", parent_id=None)
    store.messages.append_piece(reply, "Once upon ")
    store.messages.append_piece(reply, "a lighthouse")
    made = write_backup(store, home, tmp_path / "under-way.claw")
    store.messages.append_piece(reply, " there was light.")
    restore(home, made.path)
    kept = store.messages.get(reply)  # This process lives, and wrote it; it does not write it any more.
    assert (kept.state, kept.content) == ("interrupted", "Once upon a lighthouse")
    assert [hit.message_id for hit in store.search.find("lighthouse", limit=5)] == [reply]
    assert store.messages.recover() == 0
    store.close()


def test_threads_may_go_on_reading_while_it_restores(backed: tuple[Store, Backup], home: Paths) -> None:
    store, made = backed
    stop, errors = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            try:
                assert [chat.title for chat in store.chats.list()] in (["old"], ["newer"])
            except Exception as error:
                errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(5):
        store.chats.update(1, title="newer")
        restore(home, made.path)
        store.database.accept()
    stop.set()
    reader.join()
    assert errors == []


def test_what_is_here_is_never_given_up_because_it_could_not_be_kept(
    backed: tuple[Store, Backup], home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, made = backed
    store.chats.update(1, title="as it was")
    before = tree(home)
    monkeypatch.setattr(switching, "BUSY_S", 0.1)
    store.database.db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    store.close()
    holder = sqlite3.connect(home.database, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("update chats set title = title")
    try:
        with pytest.raises(BackupError, match="cannot be copied"):
            restore(home, made.path)
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert tree(home) == before
    assert titles(home) == ["as it was"]


def test_a_damaged_database_comes_back_when_the_backup_cannot_take_its_place(
    backed: tuple[Store, Backup], home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, made = backed
    store.close()
    damaged = b"this is no database any more, and long enough to be looked at" * 50
    for file in home.data.glob("claw-local.db*"):
        file.write_bytes(damaged)
    replace = os.replace

    def failing(source: Path, target: Path) -> None:
        if Path(target) == home.database and ".restore-" in str(source):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(switching.os, "replace", failing)
    with pytest.raises(BackupError, match="all is as it was"):
        restore(home, made.path)
    assert home.database.read_bytes() == damaged


def test_once_the_backup_is_in_place_no_failure_says_that_it_is_not(
    backed: tuple[Store, Backup], home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = backed
    (home.adapters / "run-2-newer").mkdir()
    rename = os.rename

    def failing(source: Path, target: Path) -> None:
        if Path(source).name == "run-2-newer":
            raise PermissionError(13, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(switching.os, "rename", failing)
    restore(home, made.path)
    assert titles(home) == ["old"]
    assert (home.adapters / "run-2-newer").is_dir()


def test_what_a_killed_restore_unpacked_goes_at_the_next(backed: tuple[Store, Backup], home: Paths) -> None:
    _, made = backed
    (home.data / ".restore-1-1.00-abc").mkdir()
    (home.data / ".restore-xyz").mkdir()
    restore(home, made.path)
    assert not list(home.data.glob(".restore-*"))


def test_an_older_backup_is_brought_up_to_date_before_open_programs_see_it(
    backed: tuple[Store, Backup], home: Paths, tmp_path: Path
) -> None:
    older = Database(locate(tmp_path / "older"), MIGRATIONS[:6])
    store = Store.__new__(Store)
    store.database = older  # An older claw-local: its tables, and nothing that came later.
    made = write_backup(store, locate(tmp_path / "older"), tmp_path / "older.backup")
    older.close()
    assert len(made.manifest.migrations) == 6 < len(MIGRATIONS)
    open_all_the_time, _ = backed
    restore(home, made.path)
    assert open_all_the_time.chats.list() == []
    open_all_the_time.database.accept()
    chat = open_all_the_time.chats.create(title="and it can write")
    open_all_the_time.chats.update(chat.id, adapter_id=0)
    assert open_all_the_time.chats.get(chat.id).adapter_id == 0


def test_another_program_that_never_stops_writing_is_said_and_not_waited_for_without_an_end(
    backed: tuple[Store, Backup], home: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, made = backed
    store.chats.update(1, title="as it was")
    before = tree(home)
    monkeypatch.setattr(switching, "BUSY_S", 0.1)
    writer = sqlite3.connect(home.database, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with pytest.raises(BackupError, match="held by another program"):
        restore(home, made.path)
    writer.close()
    assert tree(home) == before
    assert titles(home) == ["as it was"]
