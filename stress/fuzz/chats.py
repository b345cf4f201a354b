"""Chats of other programs, and backups: JSON exports, zip archives, SQLite databases."""

from __future__ import annotations

import io
import json
import random
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

from claw_local.backup import look
from claw_local.errors import ClawError
from claw_local.history.importing import import_file
from claw_local.paths import locate
from claw_local.store import Store
from claw_local.store.in_memory import InMemoryDatabase

from .mutate import VALUES, as_json, damaged_json
from .target import Target

_OWN = {
    "format": "claw-local-chats",
    "version": 1,
    "exported_at": "2026-01-01T00:00:00+00:00",
    "chats": [
        {
            "origin": "claw-local",
            "origin_id": "a/1/2026",
            "title": "Kites",
            "system": "",
            "model": "m",
            "learn": True,
            "archived": False,
            "sampling": {"temperature": 0.5},
            "created_at": "2026-01-01T00:00:00+00:00",
            "updated_at": "2026-01-01T00:00:00+00:00",
            "head": "k2",
            "messages": [
                {"key": "k1", "parent": None, "role": "user", "content": "Hi", "created_at": "2026-01-01T00:00:00"},
                {
                    "key": "k2",
                    "parent": "k1",
                    "role": "assistant",
                    "content": "Hello.",
                    "state": "done",
                    "signals": [{"source": "thumb", "score": 1, "hint": ""}],
                },
            ],
        }
    ],
}
_CLAUDE = [
    {
        "uuid": "u1",
        "name": "Kites",
        "created_at": "2024-05-01T10:00:00.000000Z",
        "updated_at": "2024-05-01T10:00:00.000000Z",
        "current_leaf_message_uuid": "m2",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "Hi",
                "content": [{"type": "text", "text": "Hi"}],
                "attachments": [{"file_name": "a.txt", "extracted_content": "words"}],
                "files": [{"file_name": "b.png"}],
                "created_at": "2024-05-01T10:00:00Z",
            },
            {
                "uuid": "m2",
                "sender": "assistant",
                "parent_message_uuid": "m1",
                "content": [{"type": "thinking", "thinking": "x"}, {"type": "tool_use", "name": "t", "input": {}}],
            },
        ],
    }
]
_SCHEMAS = {
    "oterm": (
        "create table chat (id integer primary key, name text, model text, system text)",
        "create table message (id integer primary key, chat_id integer, author text, text text, images text)",
        "insert into chat values (1, 'Kites', 'm', 'Be kind.')",
        "insert into message values (1, 1, 'user', 'Hi', '[]'), (2, 1, 'assistant', 'Hello.', '')",
    ),
    "elia": (
        "create table chat (id integer primary key, model text, title text, started_at text, archived int)",
        "create table message (id integer primary key, chat_id int, role text, content text, timestamp text, "
        "model text, parent_id int)",
        "insert into chat values (1, 'm', 'Kites', '2024-05-01 10:00:00', 0)",
        "insert into message values (1, 1, 'user', 'Hi', '2024-05-01 10:00:00', '', null), "
        "(2, 1, 'assistant', 'Hello.', '2024-05-01 10:00:01', 'm', 1)",
    ),
    "llm": (
        "create table conversations (id text primary key, name text, model text)",
        "create table responses (id text primary key, model text, prompt text, system text, response text, "
        "conversation_id text, datetime_utc text)",
        "insert into conversations values ('c', 'Kites', 'm')",
        "insert into responses values ('r', 'm', 'Hi', null, 'Hello.', 'c', '2024-05-01T10:00:00')",
    ),
    "old llm": (
        "create table logs (id integer primary key, chat_id int, model text, timestamp text, prompt text, "
        "system text, response text)",
        "insert into logs values (1, null, 'm', '2023-05-01 10:00:00', 'Hi', '', 'Hello.'), "
        "(2, 1, 'm', '2023-05-01 10:00:01', 'And?', '', 'So.')",
    ),
    "new llm": (
        "create table threads (id text, name text, tip_message_hash text)",
        "create table turns (id text, thread_id text, tip_message_hash text, datetime_utc text, model text)",
        "create table messages (hash text, parent_hash text, role text)",
        "create table parts (message_hash text, type text, content text)",
        "insert into threads values ('t', 'Kites', 'b')",
        "insert into turns values ('1', 't', 'b', '2026-01-01', 'm')",
        "insert into messages values ('a', null, 'user'), ('b', 'a', 'assistant')",
        "insert into parts values ('a', 'text', 'Hi'), ('b', 'text', 'Hello.')",
    ),
}


def targets(folder: Path) -> list[Target]:
    file = folder / "given"
    paths = locate(folder / "home")

    def store() -> Store:
        return Store(paths, InMemoryDatabase(paths))

    opened = [store()]
    taken = [0]

    def read(data: bytes) -> None:
        file.write_bytes(data)
        taken[0] += 1
        if taken[0] % 500 == 0:  # It must not grow for ever.
            opened[0].close()
            opened[0] = store()
        try:
            import_file(opened[0], file, store_name="fuzz", learn=False, on_progress=None, cancel=None)
        except ClawError:
            pass

    exports: list[Any] = [_OWN, _CLAUDE, [_chatgpt()]]
    texts = [as_json(one) for one in exports]

    def made(chance: random.Random) -> bytes:
        data = as_json(damaged_json(chance.choice(exports), chance))
        return _zipped(data) if chance.random() < 0.05 else data

    def made_database(chance: random.Random) -> bytes:
        """A whole database, some of whose values are of other kinds than its program writes."""
        statements = list(_SCHEMAS[chance.choice(list(_SCHEMAS))])
        place = folder / "made.db"
        place.unlink(missing_ok=True)
        with closing(sqlite3.connect(place)) as connection:
            for statement in statements:
                connection.execute(statement)
            names = [row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")]
            for _ in range(chance.choice((1, 1, 2, 4))):
                table = chance.choice(names)
                column = chance.choice([row[1] for row in connection.execute(f"pragma table_info({table})")])
                value = chance.choice([one for one in VALUES if isinstance(one, (str, float, type(None)))])
                value = chance.choice((value, 7, -1, b"\xff\xfe", b"", 2**62))
                try:
                    if chance.random() < 0.1:
                        connection.execute(f"alter table {table} rename column {column} to gone")
                    else:
                        connection.execute(f"update {table} set {column} = ?", [value])
                except (sqlite3.Error, UnicodeEncodeError):
                    continue
            connection.commit()
        return place.read_bytes()

    def read_backup(data: bytes) -> None:
        file.write_bytes(data)
        try:
            look(file)
        except ClawError:
            pass

    databases = [_database(folder / "seed.db", statements) for statements in _SCHEMAS.values()]
    manifest = {
        "format": "claw-local-backup",
        "version": 1,
        "created_at": "2026-01-01T00:00:00+00:00",
        "program": "0.1.0",
        "migrations": ["m001_chats"],
        "counts": {"chats": 1},
        "files": {"claw-local.db": {"size": 3, "sha256": "0" * 64}},
    }
    return [
        Target(
            "chats-json", read, [*texts, _zipped(texts[1])], words=(b"{", b"[", b'"', b"\\ud800", b"1e999"), make=made
        ),
        Target("chats-sqlite", read, databases, make=made_database, weight=0.3),
        Target(
            "backup",
            read_backup,
            [_backup(manifest)],
            words=(b"PK\x01\x02", b"PK\x05\x06", b"../"),
            make=lambda chance: _backup(damaged_json(manifest, chance)),
            weight=0.5,
        ),
    ]


def _chatgpt() -> dict[str, Any]:
    def node(key: str, parent: str | None, role: str, text: str, *children: str) -> dict[str, Any]:
        message = {
            "id": key,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": 1700000000.5,
            "content": {"content_type": "text", "parts": [text]},
            "status": "finished_successfully",
            "metadata": {"model_slug": "m"},
            "recipient": "all",
        }
        return {"id": key, "message": message, "parent": parent, "children": list(children)}

    return {
        "title": "Kites",
        "create_time": 1700000000.25,
        "update_time": 1700000500.0,
        "conversation_id": "c1",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["a"]},
            "a": node("a", "root", "user", "Hi", "b"),
            "b": node("b", "a", "assistant", "Hello.", "c"),
            "c": node("c", "b", "user", "And?"),
        },
        "current_node": "c",
    }


def _zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", data)
    return out.getvalue()


def _backup(manifest: Any) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("claw-local.db", b"abc")
    return out.getvalue()


def _database(place: Path, statements: tuple[str, ...]) -> bytes:
    place.unlink(missing_ok=True)
    with closing(sqlite3.connect(place)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return place.read_bytes()
