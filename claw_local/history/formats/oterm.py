"""Chats as oterm's database (`store.db`) holds them: tables `chat` and `message`, in a row, without times.

oterm writes over a reply that is asked for again, so a message is known by its number and its words.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Any

from ...store.records import GivenChat
from ..report import MEDIA, Skips
from .tree import Said, grow, title, words

ORIGIN = "oterm"

_ROLES = {"user": "user", "me": "user", "assistant": "assistant", "ollama": "assistant"}


def is_mine(tables: dict[str, set[str]]) -> bool:
    message, chat = tables.get("message", set()), tables.get("chat", set())
    return {"author", "text", "chat_id", "rowid"} <= message and {"id", "name"} <= chat


def chats(db: sqlite3.Connection, tables: dict[str, set[str]], skips: Skips, written_at: str) -> Iterator[GivenChat]:
    """`written_at`: when the file was changed last, for want of other times."""
    images = "images" if "images" in tables["message"] else "''"
    for row in db.execute("select * from chat order by id").fetchall():
        record = dict(row)
        rows = db.execute(
            f"select rowid as number, author, text, {images} as images from message where chat_id = ? order by rowid",
            [record["id"]],
        ).fetchall()
        yield _chat(record, rows, skips, written_at)


def _chat(record: dict[str, Any], rows: list[sqlite3.Row], skips: Skips, written_at: str) -> GivenChat:
    said: list[Said] = []
    for row in rows:
        text = words(row["text"])
        if words(row["images"]) not in ("", "[]"):
            skips.add(MEDIA)
            text = f"[image]\n\n{text}".strip()
        key = f"{row['number']} {_digest(text)}"
        said.append(Said(key, said[-1].key if said else None, _ROLES.get(words(row["author"]), "tool"), text))
    model = words(record.get("model"))
    for entry in said:
        entry.model = model if entry.role == "assistant" else ""
    last = said[-1].key if said else None
    first = said[0].text if said else ""
    messages, head = grow(said, last, written_at)
    return GivenChat(
        origin=ORIGIN,
        # Numbers alone would be the same in every oterm.
        origin_id=f"{record['id']} {_digest(first)}",
        title=title(record.get("name")),
        messages=messages,
        head=head,
        system=words(record.get("system")),
        created_at=written_at,
        updated_at=written_at,
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
