"""Programs that ask over HTTP: their keys, their sessions, and which message a repeated history ends in.

Neither a key nor a session's name is kept, only their hashes. It must never know how a fingerprint is made.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import NotFoundError, UsageError
from .database import Database, now

MOST_PRINTS = 50_000
"""Fingerprints that are kept, all sessions together; the oldest go first, and with them the way back into old chats."""
_TRIM_EVERY = 256
MOST_KEYS = 200
REMOVED = "served.removed"
MOST_REMOVED = 2000


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


@dataclass(frozen=True)
class ServedKey:
    """A key of a program that asks. `learn`: whether what comes with it may teach; `used_at`: "" for never."""

    id: int
    name: str
    learn: bool
    created_at: str
    used_at: str


def removed_keys(connection: sqlite3.Connection) -> list[str]:
    """Hashes of the keys that were removed, the oldest first."""
    row = connection.execute("select value from flags where name = ?", (REMOVED,)).fetchone()
    return str(row[0]).split() if row else []


def note_removed_keys(connection: sqlite3.Connection, hashes: Iterable[str]) -> None:
    """Remember these, and nothing else, as removed; none of them lets anyone in any longer."""
    kept = list(dict.fromkeys(hashes))[-MOST_REMOVED:]
    connection.execute("insert or replace into flags (name, value) values (?, ?)", (REMOVED, " ".join(kept)))
    connection.executemany("delete from served_keys where hash = ?", [(hash,) for hash in kept])


class Keys:
    """The table of keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, secret: str, *, learn: bool) -> ServedKey:
        """Raises UsageError: there is one of that name, or too many."""
        row = {"name": name, "hash": hashed(secret), "learn": int(learn), "created_at": now(), "used_at": ""}
        with self._database.write() as db:
            if any(db.table("served_keys").rows_where("name = ?", [name])):
                raise UsageError(f"There is a key called {name} already. Choose another name, or remove that one.")
            if db.table("served_keys").count >= MOST_KEYS:
                raise UsageError(f"There are {MOST_KEYS} keys already. Remove some that nobody uses any more.")
            if row["hash"] in (removed := removed_keys(db.conn)):  # The person takes it again.
                note_removed_keys(db.conn, [one for one in removed if one != row["hash"]])
            db.table("served_keys").insert(row)
        return self.get(name)

    def get(self, name: str) -> ServedKey:
        """Raises NotFoundError."""
        return self._one("name = ?", name) or _no_key(name)

    def find(self, secret: str) -> ServedKey | None:
        """The key this is, if it is one."""
        return self._one("hash = ?", hashed(secret))

    def _one(self, where: str, value: str) -> ServedKey | None:
        with self._database.read() as db:
            for row in db.table("served_keys").rows_where(where, [value]):
                return _key(row)
        return None

    def list(self) -> list[ServedKey]:
        """Oldest first."""
        with self._database.read() as db:
            return [_key(row) for row in db.table("served_keys").rows_where(order_by="id")]

    def set_learn(self, name: str, learn: bool) -> ServedKey:
        """Raises NotFoundError."""
        key = self.get(name)
        with self._database.write() as db:
            db.table("served_keys").update(key.id, {"learn": int(learn)})
        return self.get(name)

    def note_use(self, key_id: int) -> None:
        with self._database.write() as db:
            db.execute("update served_keys set used_at = ? where id = ?", [now(), key_id])

    def remove(self, name: str) -> ServedKey:
        """Its chats stay, and no other key ever sees them; a backup that is restored later does not bring it back.

        Raises NotFoundError.
        """
        key = self.get(name)
        with self._database.write() as db:
            removed = removed_keys(db.conn)
            removed += [
                hash for (hash,) in db.execute("select hash from served_keys where id = ?", [key.id]).fetchall()
            ]
            note_removed_keys(db.conn, removed)
        return key


class Sessions:
    """Chats that programs hold, each of one key (0: a program without one)."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._added = 0

    def begin(self, chat_id: int, key_id: int, name: str) -> None:
        """A chat becomes a session. `name`: as the client calls it; "" if it does not."""
        with self._database.write() as db:
            db.table("sessions").insert(
                {"chat_id": chat_id, "key_id": key_id, "name": _named(name), "last_at": now(), "ended": 0}
            )

    def named(self, key_id: int, name: str, *, since: str) -> int | None:
        """The chat of a session that goes on, used last since that moment."""
        query = (
            "select chat_id from sessions join chats on chats.id = chat_id where key_id = ? and name = ? "
            "and ended = 0 and last_at >= ? and deleted_at = '' order by last_at desc limit 1"
        )
        with self._database.read() as db:
            row = db.execute(query, [key_id, _named(name), since]).fetchone()
        return int(row[0]) if row else None

    def key_of(self, chat_id: int) -> int | None:
        """Whose session a chat is; None if it is none, or was deleted."""
        query = (
            "select key_id from sessions join chats on chats.id = chat_id where chat_id = ? and chats.deleted_at = ''"
        )
        with self._database.read() as db:
            row = db.execute(query, [chat_id]).fetchone()
        return int(row[0]) if row else None

    def touch(self, chat_id: int, *, ended: bool = False) -> None:
        with self._database.write() as db:
            db.execute(
                "update sessions set last_at = ?, ended = max(ended, ?) where chat_id = ?",
                [now(), int(ended), chat_id],
            )

    def note(self, key_id: int, message_id: int, print_: str) -> None:
        """By which fingerprint a message is known again."""
        with self._database.write() as db:
            db.execute(
                "insert or ignore into session_prints (key_id, print, message_id) values (?, ?, ?)",
                [key_id, print_, message_id],
            )
            self._added += 1
            if self._added % _TRIM_EVERY == 1:
                db.execute(
                    "delete from session_prints where message_id <= "
                    "(select message_id from session_prints order by message_id desc limit 1 offset ?)",
                    [MOST_PRINTS],
                )

    def known(self, key_id: int, prints: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """For each fingerprint the messages it means, as (message id, chat id), newest first; sessions that have ended
        and deleted chats are left out."""
        found: dict[str, list[tuple[int, int]]] = {}
        for part in _parts(prints):
            query = (
                "select print, message_id, messages.chat_id from session_prints "
                "join messages on messages.id = message_id join sessions on sessions.chat_id = messages.chat_id "
                "join chats on chats.id = messages.chat_id "
                f"where session_prints.key_id = ? and print in ({', '.join('?' * len(part))}) "
                "and ended = 0 and deleted_at = '' order by message_id desc"
            )
            with self._database.read() as db:
                for print_, message_id, chat_id in db.execute(query, [key_id, *part]).fetchall():
                    found.setdefault(print_, []).append((message_id, chat_id))
        return found


def _parts(prints: Sequence[str]) -> Iterable[Sequence[str]]:
    for start in range(0, len(prints), 400):
        yield prints[start : start + 400]


def _named(name: str) -> str:
    return hashed(name) if name else ""


def _key(row: dict[str, Any]) -> ServedKey:
    return ServedKey(int(row["id"]), row["name"], bool(row["learn"]), row["created_at"], row["used_at"])


def _no_key(name: str) -> ServedKey:
    raise NotFoundError(f"There is no key called {name}. `claw-local serve keys list` shows those there are.")
