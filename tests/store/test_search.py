"""The search index: kept up to date, planned for large stores, and built afresh from older ones."""

from __future__ import annotations

from claw_local.paths import Paths
from claw_local.store import Store
from claw_local.store import search as index
from claw_local.store.database import Database
from claw_local.store.migrations import MIGRATIONS
from claw_local.store.search import Hit


def plan(store: Store, query: str) -> str:
    return "\n".join(row[3] for row in store.database.db.conn.execute(f"explain query plan {query}"))


def test_an_older_store_is_indexed_when_it_is_opened(home: Paths) -> None:
    older = Database(home, MIGRATIONS[:4])
    with older.write() as db:
        db.execute(
            "insert into chats (title, model, system, learn, archived, created_at, updated_at) "
            "values ('About kites', '', '', 1, 0, '2025-01-01T00:00:00', '2025-01-01T00:00:00')"
        )
        db.execute(
            "insert into messages (chat_id, role, content, state, turn_type, learn, created_at) "
            "values (1, 'user', '凧の話', 'done', 'main', 1, '2025-01-01T00:00:01')"
        )
    older.close()
    store = Store(home)
    assert store.search.find("凧", limit=5) == [Hit(1, 1)]
    assert store.search.find("kites", limit=5) == [Hit(1, None)]
    assert not store.database.db.table("messages_fts").exists()
    store.chats.delete(1)
    assert store.search.find("kites", limit=5) == []


def test_built_afresh_the_index_finds_the_same(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create(title="kites")
    store.messages.add(chat.id, "user", "how do kites fly", parent_id=None)
    before = store.search.find("kit", limit=5)
    with store.database.write() as db:
        index.rebuild(db)
    assert store.search.find("kit", limit=5) == before
    assert len(before) == 2


def test_a_moment_that_no_clock_will_see_is_found_too(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create()
    with store.database.write() as db:
        for number, moment in enumerate(
            ("0001-01-01T00:00:00+00:00", "2255-03-14T16:00:00+00:00", "9999-12-31T23:59:59+00:00")
        ):
            index.add(db, chat.id, number + 1, "kites", moment)
    assert store.search.find("kites", limit=5) == [Hit(chat.id, 3), Hit(chat.id, 2), Hit(chat.id, 1)]


def test_messages_of_one_moment_are_all_found(home: Paths) -> None:
    store = Store(home)
    chat = store.chats.create()
    with store.database.write() as db:
        for message_id in (1, 1 + (1 << 20), 2 + (1 << 20)):
            index.add(db, chat.id, message_id, "same time", "2025-01-01T00:00:00+00:00")
    assert len(store.search.find("same", limit=5)) == 3


def test_large_stores_are_searched_and_listed_without_sorting(home: Paths) -> None:
    store = Store(home)
    searching = plan(store, index._FIND.replace(":query", "'kites'").replace(":limit", "50"))
    assert "TEMP B-TREE" not in searching and "SCAN search VIRTUAL TABLE" in searching
    assert "SEARCH search_docs USING INTEGER PRIMARY KEY" in searching
    listing = plan(
        store,
        "select * from chats where archived = 0 and deleted_at = '' order by updated_at desc, id desc limit 200",
    )
    assert "chats_shown" in listing and "TEMP B-TREE" not in listing
