"""Chats as elia's database (`elia.sqlite`) holds them: tables `chat` and `message`, the system prompt as a message."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Any

from ...store.records import GivenChat
from ..report import Skips
from .tree import Said, grow, latest, moment, title, words

ORIGIN = "elia"

_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "system": "system"}


def is_mine(tables: dict[str, set[str]]) -> bool:
    return {"role", "content", "chat_id"} <= tables.get("message", set()) and "started_at" in tables.get("chat", set())


def chats(db: sqlite3.Connection, tables: dict[str, set[str]], skips: Skips, written_at: str) -> Iterator[GivenChat]:
    for row in db.execute("select * from chat order by id").fetchall():
        record = dict(row)
        rows = db.execute("select * from message where chat_id = ? order by id", [record["id"]]).fetchall()
        yield _chat(record, [dict(message) for message in rows], written_at)


def _chat(record: dict[str, Any], rows: list[dict[str, Any]], written_at: str) -> GivenChat:
    said: list[Said] = []
    keys: dict[int, str] = {}
    system = ""
    for row in rows:
        text, role = words(row["content"]), _ROLES.get(words(row["role"]), "tool")
        if role == "system":
            system = system or text
            continue
        keys[row["id"]] = key = f"{row['id']} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
        parent = keys.get(row.get("parent_id") or 0) or (said[-1].key if said else None)
        entry = Said(key, parent, role, text, created_at=moment(row.get("timestamp")))
        entry.model = words(row.get("model") or record.get("model")) if role == "assistant" else ""
        said.append(entry)
    begun = moment(record.get("started_at"))
    messages, head = grow(said, said[-1].key if said else None, begun or written_at)
    return GivenChat(
        origin=ORIGIN,
        origin_id=f"{record['id']} {words(record.get('started_at')) or (said[0].key if said else '')}",
        title=title(record.get("title")),
        messages=messages,
        head=head,
        system=system,
        created_at=begun or written_at,
        updated_at=latest(messages),
        archived=bool(record.get("archived")),
    )
