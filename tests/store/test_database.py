"""Opening, migrating and guarding the database file."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading

import pytest
from sqlite_utils import Database as SqliteDatabase

from claw_local.errors import StoreError
from claw_local.paths import Paths
from claw_local.store import Store
from claw_local.store.database import Database
from claw_local.store.migrations import MIGRATIONS


def test_files_are_for_their_owner_only(home: Paths) -> None:
    store = Store(home)
    store.chats.create(title="x")
    for name in ("claw-local.db", "claw-local.db-wal", "claw-local.db-shm"):
        assert stat.S_IMODE((home.data / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(home.data.stat().st_mode) == 0o700
    store.close()


def test_uses_wal_and_foreign_keys(home: Paths) -> None:
    store = Store(home)
    connection = store.database.db.conn
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        store.signals.add(999, "thumb", 1)


def test_every_migration_is_recorded_once(home: Paths) -> None:
    Store(home).close()
    store = Store(home)
    names = [row["name"] for row in store.database.db.table("migrations").rows]
    assert names == [migration.__name__ for migration in MIGRATIONS]


def test_an_older_file_is_migrated_after_a_backup(home: Paths) -> None:
    older = Database(home, MIGRATIONS[:1])
    with older.write() as db:
        db.table("chats").insert(
            {"title": "old", "model": "", "system": "", "learn": 1, "archived": 0, "created_at": "a", "updated_at": "a"}
        )
    older.close()
    store = Store(home)
    assert [chat.title for chat in store.chats.list()] == ["old"]
    backups = list(home.backups.glob("*.db"))
    assert len(backups) == 1
    kept = sqlite3.connect(backups[0])
    assert kept.execute("select title from chats").fetchall() == [("old",)]
    assert kept.execute("select count(*) from sqlite_master where name = 'signals'").fetchone() == (0,)


def test_a_failing_migration_leaves_the_file_as_it_was(home: Paths) -> None:
    Database(home, MIGRATIONS[:1]).close()

    def m002_breaks(db: SqliteDatabase) -> None:
        db.table("half").create({"id": int})
        raise sqlite3.OperationalError("no such thing")

    with pytest.raises(StoreError):
        Database(home, (MIGRATIONS[0], m002_breaks))
    reopened = Database(home, MIGRATIONS[:1])
    assert not reopened.db.table("half").exists()


def test_a_newer_file_is_refused_and_left_alone(home: Paths) -> None:
    store = Store(home)
    store.database.db.table("migrations").insert({"name": "m999_future", "applied_at": "x"})
    store.close()
    before = home.database.read_bytes()
    with pytest.raises(StoreError, match="newer claw-local"):
        Store(home)
    assert home.database.read_bytes() == before


def test_a_file_that_is_no_database_is_named(home: Paths) -> None:
    home.make()
    home.database.write_bytes(b"this is not a database, and long enough to be looked at" * 40)
    with pytest.raises(StoreError, match="damaged"):
        Store(home)


def test_a_home_that_cannot_be_made_is_named(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from claw_local.paths import locate

    blocked = os.path.join(tmp_path, "file")
    with open(blocked, "w") as file:
        file.write("in the way")
    with pytest.raises(StoreError, match="CLAW_LOCAL_HOME"):
        Store(locate(os.path.join(blocked, "home")))


def test_a_transaction_that_fails_writes_nothing(home: Paths) -> None:
    store = Store(home)

    def write_half() -> None:
        with store.database.write():
            store.chats.create(title="half")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write_half()
    assert store.chats.list() == []


def test_threads_write_at_once_without_losing_a_row(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create(title="busy")

    def write(who: int) -> None:
        for n in range(50):
            store.messages.add(chat.id, "user", f"{who}:{n}", parent_id=None)

    threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.database.db.table("messages").count == 200


def test_closing_waits_for_the_thread_that_is_at_work(home: Paths) -> None:
    database = Database(home)
    at_work, may_end = threading.Event(), threading.Event()
    found: list[object] = []

    def work() -> None:
        with database.write() as db:
            at_work.set()
            may_end.wait(10)
            found.append(db.execute("select count(*) from chats").fetchone()[0])

    worker = threading.Thread(target=work)
    worker.start()
    assert at_work.wait(10)
    closer = threading.Thread(target=database.close)
    closer.start()
    closer.join(0.2)
    assert closer.is_alive(), "its connection is not closed under its hands"
    may_end.set()
    worker.join(10)
    closer.join(10)
    assert found == [0]
    with pytest.raises(StoreError, match="closed"), database.read():
        pass
