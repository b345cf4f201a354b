"""Numbers of chats, messages, hints and adapters are never given twice; also not in a file from before that was so.

data/before_m007.db.gz was written by the version before m007, with the embedded model: three chats, the last of them
gone, a hint that was removed, and an adapter that learned from replies 2 and 12, of which 12 is gone too.
"""

from __future__ import annotations

import gzip
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from claw_local.paths import Paths
from claw_local.store import Store
from claw_local.store.database import Database
from claw_local.store.migrations import MIGRATIONS

OLD = Path(__file__).parent / "data" / "before_m007.db.gz"
NUMBERED = ("chats", "messages", "signals", "hints", "adapters", "runs")


@pytest.fixture
def old(home: Paths) -> Paths:
    home.make()
    home.database.write_bytes(gzip.decompress(OLD.read_bytes()))
    return home


def rows(path: Path, columns: dict[str, list[str]] | None = None) -> dict[str, list[Any]]:
    """Every row of every table; of these columns alone, if they are named."""
    with closing(sqlite3.connect(path)) as file:
        return {
            table: file.execute(
                f"select {', '.join(columns[table]) if columns else '*'} from {table} order by 1"
            ).fetchall()
            for table in (*NUMBERED, "flags")
        }


def columns_of(path: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(path)) as file:
        return {
            table: [name for (name,) in file.execute("select name from pragma_table_info(?)", [table])]
            for table in (*NUMBERED, "flags")
        }


def test_an_old_file_keeps_every_row_and_a_copy_of_what_it_was(old: Paths) -> None:
    before, columns = rows(old.database), columns_of(old.database)
    Store(old).close()
    assert rows(old.database, columns) == before, "later migrations may add columns"
    (copy,) = old.backups.glob("*-before-m007_numbers_for_good.db")
    assert rows(copy) == before
    with closing(sqlite3.connect(old.database)) as file:
        assert file.execute("pragma foreign_key_check").fetchall() == []
        assert file.execute("pragma integrity_check").fetchall() == [("ok",)]
        names = {row[0] for row in file.execute("select name from sqlite_master where type = 'index'")}
    with closing(sqlite3.connect(copy)) as file:
        assert names >= {row[0] for row in file.execute("select name from sqlite_master where type = 'index'")}


def test_two_programs_that_open_an_old_file_at_once_make_one_copy_of_what_it_was(
    old: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, others = rows(old.database), list[threading.Thread]()
    back_up = Database._back_up

    def while_another_opens_it(self: Database, name: str) -> Path:
        if not others:
            others.append(threading.Thread(target=lambda: Store(old).close()))
            others[0].start()
            others[0].join(0.3)
        return back_up(self, name)

    monkeypatch.setattr(Database, "_back_up", while_another_opens_it)
    Store(old).close()
    others[0].join()
    (copy,) = old.backups.iterdir()
    assert rows(copy) == before


def test_an_old_file_with_a_view_of_the_persons_own_is_brought_up_to_date(old: Paths) -> None:
    with closing(sqlite3.connect(old.database)) as file:
        file.execute("create view mine as select title from chats")
        file.commit()
    Store(old).close()
    with closing(sqlite3.connect(old.database)) as file:
        assert file.execute("select count(*) from mine").fetchone() == (2,)


def test_an_old_file_is_searched_and_talked_on_as_before(old: Paths) -> None:
    store = Store(old)
    assert [hit.chat_id for hit in store.search.find("Norwegen", limit=5)] == [2, 2]
    assert store.messages.branch(store.chats.get(2).head_id or 0)[0].role == "user"
    store.messages.go_on(2, "Und Finnland?", learn="yes")
    with pytest.raises(Exception, match="FOREIGN KEY"):
        store.signals.add(999, "thumb", 1)
    store.chats.delete(1)
    assert [chat.id for chat in store.chats.list()] == [2]
    store.close()


def test_no_number_that_something_remembers_is_given_again(old: Paths) -> None:
    store = Store(old)
    chat = store.chats.create(title="new")
    assert chat.id == 3, "what the old version gave again cannot be known, but nothing remembers chat 3"
    user, reply = store.messages.go_on(chat.id, "hello", learn="yes")[1:]
    assert (user, reply) == (13, 14), "an adapter has learned from 12, which is gone"
    assert store.hints.add("Answer in rhyme.").id == 4, "hint 3 stood in the prompt of a reply"
    store.close()


def test_the_newest_row_deleted_leaves_its_number_unused(home: Paths) -> None:
    store = Store(home)
    first = store.chats.create(title="first")
    message = store.messages.add(first.id, "user", "hello", parent_id=None)
    store.chats.erase([first.id])
    again = store.chats.create(title="second")
    assert again.id > first.id
    assert store.messages.add(again.id, "user", "hello", parent_id=None) > message
    hint = store.hints.add("Answer in rhyme.")
    store.hints.remove(hint.id)
    assert store.hints.add("Answer in rhyme.").id > hint.id
    store.close()
    store = Store(home)
    store.chats.erase([again.id])
    assert store.chats.create(title="third").id > again.id, "also after it was closed"
    store.close()


def test_nothing_of_the_old_tables_stays_on_the_disk(home: Paths) -> None:
    secret = "correcthorsebatterystaple" * 400
    older = Database(home, MIGRATIONS[:6])
    with older.write() as db:
        empty = {"model": "", "system": "", "learn": 1, "archived": 0, "created_at": "a", "updated_at": "a"}
        db.table("chats").insert({"title": "old", **empty})
        said = {"chat_id": 1, "role": "user", "state": "done", "turn_type": "main", "learn": 1, "created_at": "a"}
        db.table("messages").insert({"content": secret, **said})
    older.close()
    store = Store(home)
    store.chats.erase([1])
    store.close()
    assert b"correcthorse" not in home.database.read_bytes()


def test_a_file_with_rows_that_point_nowhere_is_left_as_it_was(old: Paths) -> None:
    with closing(sqlite3.connect(old.database)) as file:
        file.execute("update messages set chat_id = 77 where id = 1")
        file.commit()
    before = rows(old.database)
    with pytest.raises(Exception, match=r"1 rows of messages point to rows that are gone.*doctor"):
        Store(old)
    assert rows(old.database) == before
