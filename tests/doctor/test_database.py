"""The database, whole and damaged, on disk."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

import pytest

from claw_local.doctor.database import check_database
from claw_local.paths import Paths
from claw_local.store.database import Database


@pytest.fixture
def database(home: Paths) -> Paths:
    """A database as the store makes it, with enough in it to be damaged."""
    made = Database(home)
    with made.write() as db:
        db.conn.execute(
            "INSERT INTO chats (id, title, model, system, learn, archived, created_at, updated_at) "
            "VALUES (1, ?, 'm', '', 1, 0, 'now', 'now')",
            ("x" * 50_000,),
        )
    made.close()
    return home


def change(paths: Paths, statement: str) -> None:
    with closing(sqlite3.connect(paths.database)) as connection:
        connection.execute(statement)
        connection.commit()


def test_no_database_yet_is_fine_and_none_is_made(home):
    assert check_database(home).state == "ok"
    assert not home.database.exists()


def test_a_whole_one_is_fine(database):
    check = check_database(database)
    assert (check.state, check.remedy) == ("ok", "")


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of a file's size stands for a disk that is full")
@pytest.mark.parametrize(("least", "state"), [(0, "problem"), (1 << 62, "warning")])
def test_a_disk_that_takes_nothing_is_not_a_matter_of_leave(database, monkeypatch, least, state):
    import resource

    monkeypatch.setattr("claw_local.doctor.database.FULL_BYTES", least)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        check = check_database(database)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert check.state == state
    assert "The disk failed or is full" in check.detail
    assert "Free some space" in check.remedy and "readable" not in check.remedy


def test_it_is_looked_at_while_another_process_writes(database):
    with closing(sqlite3.connect(database.database)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert check_database(database).state == "ok"


def test_damaged_pages_are_found(database):
    with database.database.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096 * 20)
    check = check_database(database)
    assert check.state == "problem"
    assert "damaged" in check.detail
    assert "start afresh" in check.remedy


def test_a_file_that_is_no_database_is_found_and_the_newest_copy_is_named(database):
    database.database.write_bytes(b"not a database, by any means" * 1000)
    database.backups.mkdir(exist_ok=True)
    for name in ("20260101T000000-old.db", "20260201T000000-new.db"):
        (database.backups / name).touch()
    check = check_database(database)
    assert check.state == "problem"
    assert "20260201T000000-new.db" in check.remedy


def test_rows_that_point_at_nothing_are_found(database):
    change(
        database,
        "INSERT INTO messages (chat_id, role, content, state, turn_type, learn, created_at) "
        "VALUES (99, 'user', '', 'done', 'main', 1, 'now')",
    )
    check = check_database(database)
    assert check.state == "problem"
    assert "messages" in check.detail


def test_one_that_a_newer_version_wrote_is_named(database):
    change(database, "INSERT INTO migrations (name, applied_at) VALUES ('m999_future', 'later')")
    check = check_database(database)
    assert check.state == "problem"
    assert "m999_future" in check.detail
    assert "Update claw-local" in check.remedy
