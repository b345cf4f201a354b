"""Reading the databases of oterm, elia and llm. Their tables are made here as those programs make them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from claw_local.errors import HistoryError
from claw_local.history import History
from claw_local.store import Store

from .conftest import shown

# oterm 0.26, and its first version.
OTERM = """
    CREATE TABLE "chat" ("id" INTEGER, "name" TEXT, "model" TEXT NOT NULL, "system" TEXT,
        "provider" TEXT DEFAULT "ollama", "parameters" TEXT DEFAULT "{}", "tools" TEXT DEFAULT "[]",
        "thinking" BOOLEAN DEFAULT 0, PRIMARY KEY("id" AUTOINCREMENT));
    CREATE TABLE "message" ("id" INTEGER, "chat_id" INTEGER NOT NULL, "author" TEXT NOT NULL, "text" TEXT NOT NULL,
        "images" TEXT DEFAULT "[]", PRIMARY KEY("id" AUTOINCREMENT),
        FOREIGN KEY("chat_id") REFERENCES "chat"("id") ON DELETE CASCADE);
"""
OTERM_FIRST = """
    CREATE TABLE "chat" ("id" INTEGER, "name" TEXT, "model" TEXT NOT NULL, "context" TEXT NOT NULL, "system" TEXT,
        "format" TEXT, PRIMARY KEY("id" AUTOINCREMENT));
    CREATE TABLE "message" ("chat_id" INTEGER NOT NULL, "author" TEXT NOT NULL, "text" TEXT NOT NULL,
        FOREIGN KEY("chat_id") REFERENCES "chat"("id") ON DELETE CASCADE);
"""
# elia 1.10.
ELIA = """
    CREATE TABLE system_prompt (id INTEGER NOT NULL, title VARCHAR NOT NULL, prompt VARCHAR NOT NULL,
        created_at DATETIME DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (id));
    CREATE TABLE chat (id INTEGER NOT NULL, model VARCHAR NOT NULL, title VARCHAR,
        started_at DATETIME DEFAULT CURRENT_TIMESTAMP, archived BOOLEAN NOT NULL, PRIMARY KEY (id));
    CREATE TABLE message (id INTEGER NOT NULL, chat_id INTEGER, role VARCHAR NOT NULL, content VARCHAR NOT NULL,
        timestamp DATETIME DEFAULT CURRENT_TIMESTAMP, meta JSON, parent_id INTEGER, model VARCHAR, PRIMARY KEY (id),
        FOREIGN KEY(chat_id) REFERENCES chat (id), FOREIGN KEY(parent_id) REFERENCES message (id));
"""
# llm before 0.32, and what 0.32 to 0.36 put beside it.
LLM = """
    CREATE TABLE "conversations" ("id" TEXT PRIMARY KEY, "name" TEXT, "model" TEXT);
    CREATE TABLE "fragments" ("id" INTEGER PRIMARY KEY, "hash" TEXT, "content" TEXT, "datetime_utc" TEXT,
        "source" TEXT);
    CREATE TABLE "responses" ("id" TEXT PRIMARY KEY, "model" TEXT, "prompt" TEXT, "system" TEXT, "prompt_json" TEXT,
        "options_json" TEXT, "response" TEXT, "response_json" TEXT,
        "conversation_id" TEXT REFERENCES "conversations"("id"), "duration_ms" INTEGER, "datetime_utc" TEXT);
    CREATE TABLE "prompt_fragments" ("response_id" TEXT REFERENCES "responses"("id"),
        "fragment_id" INTEGER REFERENCES "fragments"("id"), "order" INTEGER,
        PRIMARY KEY ("response_id", "fragment_id", "order"));
"""
LLM_THREADS = """
    CREATE TABLE "messages" ("hash" TEXT PRIMARY KEY, "parent_hash" TEXT REFERENCES "messages"("hash"), "role" TEXT,
        "provider_metadata" TEXT);
    CREATE TABLE "parts" ("id" INTEGER PRIMARY KEY, "message_hash" TEXT, "position" INTEGER, "type" TEXT,
        "tool_name" TEXT, "text" TEXT, "payload" TEXT);
    CREATE TABLE "threads" ("id" TEXT PRIMARY KEY, "name" TEXT, "tip_message_hash" TEXT, "forked_from" TEXT,
        "datetime_utc" TEXT);
    CREATE TABLE "turns" ("id" TEXT PRIMARY KEY, "thread_id" TEXT, "parent_message_hash" TEXT, "tip_message_hash" TEXT,
        "model" TEXT, "datetime_utc" TEXT);
"""
LLM_FIRST = """
    CREATE TABLE "logs" ("id" INTEGER PRIMARY KEY, "model" TEXT, "prompt" TEXT, "system" TEXT, "prompt_json" TEXT,
        "options_json" TEXT, "response" TEXT, "response_json" TEXT, "reply_to_id" INTEGER, "chat_id" INTEGER,
        "duration_ms" INTEGER, "datetime_utc" TEXT);
"""


def database(path: Path, schema: str, rows: Iterable[tuple[str, dict[str, Any]]]) -> Path:
    with sqlite3.connect(path) as db:
        db.executescript(schema)
        for table, row in rows:
            names = ", ".join(f'"{name}"' for name in row)
            db.execute(f"insert into {table} ({names}) values ({', '.join('?' * len(row))})", list(row.values()))
    db.close()
    return path


def oterm(path: Path, *texts: str) -> Path:
    rows: list[tuple[str, dict[str, Any]]] = [
        ("chat", {"id": 1, "name": "Kites", "model": "llama3", "system": "Be kind."})
    ]
    for place, text in enumerate(texts):
        author = "assistant" if place % 2 else "user"
        rows.append(("message", {"chat_id": 1, "author": author, "text": text}))
    return database(path, OTERM, rows)


def test_oterm_chats_come_in_order_with_their_system_prompt(store: Store, history: History, tmp_path: Path) -> None:
    file = oterm(tmp_path / "store.db", "how do kites fly", "by lift")
    report = history.import_file(file)
    assert (report.source, report.chats, report.messages) == ("oterm", 1, 2)
    chat = store.chats.get(1)
    assert (chat.title, chat.system, chat.origin) == ("Kites", "Be kind.", "oterm")
    assert shown(store, 1) == [("user", "how do kites fly"), ("assistant", "by lift")]
    assert history.messages(1)[1].model == "llama3"
    assert history.import_file(file).already == 1


def test_a_reply_that_oterm_wrote_over_becomes_another_version(store: Store, history: History, tmp_path: Path) -> None:
    file = oterm(tmp_path / "store.db", "how do kites fly", "by lift")
    history.import_file(file)
    with sqlite3.connect(file) as db:
        db.execute("update message set text = 'by magic' where id = 2")
    db.close()
    assert history.import_file(file).messages == 1
    assert shown(store, 1)[-1] == ("assistant", "by magic")
    assert len(history.messages(1)) == 3


def test_two_oterms_with_equal_numbers_are_told_apart(store: Store, history: History, tmp_path: Path) -> None:
    history.import_file(oterm(tmp_path / "a.db", "one"))
    assert history.import_file(oterm(tmp_path / "b.db", "two")).chats == 1


def test_the_first_oterm_had_no_numbers(store: Store, history: History, tmp_path: Path) -> None:
    rows = [
        ("chat", {"id": 5, "name": None, "model": "llama2", "context": "[]"}),
        ("message", {"chat_id": 5, "author": "me", "text": "hi"}),
        ("message", {"chat_id": 5, "author": "ollama", "text": "hello"}),
    ]
    history.import_file(database(tmp_path / "store.db", OTERM_FIRST, rows))
    assert shown(store, 1) == [("user", "hi"), ("assistant", "hello")]


def test_elia_chats_come_with_times_and_their_system_message_as_prompt(
    store: Store, history: History, tmp_path: Path
) -> None:
    message = {"chat_id": 3, "meta": "{}", "model": "gpt-4o"}
    rows = [
        ("chat", {"id": 3, "model": "gpt-4o", "title": "Kites", "started_at": "2024-06-01 10:00:00", "archived": 1}),
        ("message", {**message, "role": "system", "content": "Be kind.", "timestamp": "2024-06-01 10:00:00.000000"}),
        ("message", {**message, "role": "user", "content": "hi", "timestamp": "2024-06-01 10:00:01.500000"}),
        ("message", {**message, "role": "assistant", "content": "hello", "timestamp": "2024-06-01 10:00:02.000000"}),
    ]
    file = database(tmp_path / "elia.sqlite", ELIA, rows)
    assert history.import_file(file).source == "elia"
    chat = store.chats.get(1)
    assert (chat.system, chat.archived, chat.created_at) == ("Be kind.", True, "2024-06-01T10:00:00.000000+00:00")
    assert [(m.role, m.content, m.created_at[11:21]) for m in history.messages(1)] == [
        ("user", "hi", "10:00:01.5"),
        ("assistant", "hello", "10:00:02.0"),
    ]
    assert history.import_file(file).already == 1


def llm_rows() -> list[tuple[str, dict[str, Any]]]:
    response = {"model": "gpt-4o", "conversation_id": "01a", "datetime_utc": "2024-06-01T10:00:00"}
    return [
        ("conversations", {"id": "01a", "name": "about kites", "model": "gpt-4o"}),
        ("fragments", {"id": 1, "content": "a file"}),
        ("responses", {**response, "id": "01b", "prompt": "hi", "system": "Be kind.", "response": "hello"}),
        ("responses", {**response, "id": "01c", "prompt": "and this", "response": "fine"}),
        ("prompt_fragments", {"response_id": "01c", "fragment_id": 1, "order": 0}),
    ]


OLDER = [("user", "hi"), ("assistant", "hello"), ("user", "a file\nand this"), ("assistant", "fine")]


def test_llm_conversations_come_with_fragments(store: Store, history: History, tmp_path: Path) -> None:
    file = database(tmp_path / "logs.db", LLM, llm_rows())
    report = history.import_file(file)
    assert (report.source, report.chats, report.messages) == ("llm", 1, 4)
    assert (store.chats.get(1).title, store.chats.get(1).system) == ("about kites", "Be kind.")
    assert shown(store, 1) == OLDER


def thread_rows() -> list[tuple[str, dict[str, Any]]]:
    said = [("h1", None, "system", "Be kind."), ("h2", "h1", "user", "hi"), ("h3", "h2", "assistant", "hello")]
    said += [("h4", "h3", "user", None), ("h5", "h4", "assistant", "fine"), ("h6", "h5", "user", "more")]
    said += [("h7", "h6", "assistant", "done"), ("h8", "h6", "assistant", "done otherwise")]
    rows: list[tuple[str, dict[str, Any]]] = []
    for key, parent, role, text in said:
        payload = None if text else '{"text_ref": [{"fragment": 1}, {"literal": "\\nand this"}]}'
        rows.append(("messages", {"hash": key, "parent_hash": parent, "role": role}))
        part = {"message_hash": key, "position": 1, "type": "text", "text": text, "payload": payload}
        rows.append(("parts", part))
    rows.append(("parts", {"message_hash": "h7", "position": 0, "type": "reasoning", "text": "hm"}))
    for turn, tip in (("02a", "h8"), ("02b", "h7")):
        at = {"model": "gpt-5", "datetime_utc": "2025-06-01T10:00:00+00:00"}
        rows.append(("turns", {"id": turn, "thread_id": "01a", "tip_message_hash": tip, **at}))
    return [*rows, ("threads", {"id": "01a", "name": "about kites", "tip_message_hash": "h7"})]


def test_a_chat_that_llm_moved_into_its_newer_tables_is_one_chat(
    store: Store, history: History, tmp_path: Path
) -> None:
    history.import_file(database(tmp_path / "old.db", LLM, llm_rows()))
    newer = database(tmp_path / "new.db", LLM + LLM_THREADS, [*llm_rows(), *thread_rows()])
    report = history.import_file(newer)
    assert (report.chats, report.grown, report.messages) == (0, 1, 3)
    assert report.skipped == (("1 thought", "only what you and the assistant said is kept"),)
    assert shown(store, 1) == [*OLDER, ("user", "more"), ("assistant", "done")]
    assert history.import_file(newer).already == 1


def test_the_first_llm_had_one_table(store: Store, history: History, tmp_path: Path) -> None:
    rows = [
        ("logs", {"id": 1, "model": "gpt-3.5", "prompt": "hi", "response": "hello", "datetime_utc": "2023-05-01"}),
        ("logs", {"id": 2, "model": "gpt-3.5", "prompt": "again", "response": "yes", "chat_id": 1}),
        ("logs", {"id": 3, "model": "gpt-3.5", "prompt": "other", "response": "no"}),
    ]
    assert history.import_file(database(tmp_path / "log.db", LLM_FIRST, rows)).chats == 2
    assert shown(store, 1) == [("user", "hi"), ("assistant", "hello"), ("user", "again"), ("assistant", "yes")]


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_in_use_is_read_with_its_latest_words_and_nothing_is_written_beside_it(
    store: Store, history: History, tmp_path: Path, mode: str
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    file = oterm(folder / "store.db", "hi", "hello")
    running = sqlite3.connect(file)
    running.execute(f"pragma journal_mode = {mode}")
    running.execute("insert into message (chat_id, author, text) values (1, 'user', 'just now')")
    running.commit()
    before = {entry.name: entry.stat().st_mtime_ns for entry in folder.iterdir()}
    history.import_file(file)
    assert {entry.name: entry.stat().st_mtime_ns for entry in folder.iterdir()} == before
    running.close()
    assert shown(store, 1)[-1] == ("user", "just now")


def test_a_database_that_died_with_a_journal_is_read_from_a_copy(
    store: Store, history: History, tmp_path: Path
) -> None:
    file = oterm(tmp_path / "store.db", *(f"message {n}" for n in range(400)))
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    writing = sqlite3.connect(file, isolation_level=None)
    writing.execute("pragma cache_size = 1")
    writing.execute("begin immediate")
    writing.execute("update message set text = 'never committed'")
    for name in ("store.db", "store.db-journal"):
        shutil.copyfile(tmp_path / name, crashed / name)
    writing.execute("rollback")
    writing.close()
    history.import_file(crashed / "store.db")
    assert {text for _, text in shown(store, 1)} == {f"message {n}" for n in range(400)}
    assert sorted(entry.name for entry in crashed.iterdir()) == ["store.db", "store.db-journal"]


def test_unknown_and_own_databases_are_said(store: Store, history: History, tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="without chats that are known"):
        history.import_file(database(tmp_path / "x.db", "create table t (x)", []))
    with pytest.raises(HistoryError, match="a store of claw-local"):
        history.import_file(store.database.path)


def test_a_damaged_database_is_said(store: Store, history: History, tmp_path: Path) -> None:
    file = oterm(tmp_path / "store.db", *("words " * 200 for _ in range(200)))
    data = bytearray(file.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    file.write_bytes(data)
    with pytest.raises(HistoryError, match="damaged database"):
        history.import_file(file)


def test_a_database_like_oterm_s_whose_rows_have_no_numbers_is_unknown_not_damaged(
    history: History, tmp_path: Path
) -> None:
    schema = """
        create table chat (id integer primary key, name text);
        create table message (chat_id integer, author text, text text, primary key (chat_id, text)) without rowid;
    """
    with pytest.raises(HistoryError, match="without chats that are known"):
        history.import_file(database(tmp_path / "x.db", schema, [("chat", {"id": 1, "name": "x"})]))


@pytest.mark.parametrize(
    "schema",
    [
        "create table responses (id text, conversation_id text)",
        """create table conversations (id text, name text);
        create table responses (id text, conversation_id text); insert into responses values ('r', 'c')""",
    ],
)
def test_a_database_like_llm_s_that_lacks_something_is_said(history: History, tmp_path: Path, schema: str) -> None:
    with pytest.raises(HistoryError, match="damaged database"):
        history.import_file(database(tmp_path / "x.db", schema, []))
