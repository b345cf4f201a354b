"""A database of every earlier schema opens, after a copy of it was made; nothing that was said is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from claw_local.paths import Paths
from claw_local.store import Store
from claw_local.store.database import Database
from claw_local.store.migrations import MIGRATIONS

WHEN = "2026-01-01T00:00:00.000000+00:00"


@pytest.mark.parametrize("count", range(1, len(MIGRATIONS)), ids=lambda count: MIGRATIONS[count - 1].__name__)
def test_every_earlier_schema_opens_after_a_copy(home: Paths, count: int) -> None:
    Database(home, MIGRATIONS[:count]).close()
    with closing(sqlite3.connect(home.database)) as db:
        db.execute(
            "insert into chats (id, title, model, system, learn, archived, created_at, updated_at) "
            "values (7, 'Kites', '', '', 1, 0, ?, ?)",
            (WHEN, WHEN),
        )
        for number in range(30):
            db.execute(
                "insert into messages (chat_id, role, content, state, turn_type, learn, created_at) "
                "values (7, 'user', ?, 'done', 'main', 1, ?)",
                (f"kite {number}", WHEN),
            )
        db.commit()
    store = Store(home)
    with store.database.read() as db:
        assert [row[0] for row in db.execute("select content from messages order by id").fetchall()] == [
            f"kite {number}" for number in range(30)
        ]
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    assert store.chats.get(7).title == "Kites"
    store.close()
    (copy,) = home.backups.glob("*.db")
    assert copy.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("select count(*) from messages").fetchone() == (30,)
        names = [row[0] for row in db.execute("select name from migrations order by rowid")]
    assert names == [migration.__name__ for migration in MIGRATIONS[:count]]
