"""A backup's database: copied while others write, its paths made portable, and checked before it is trusted.

It must never write to the database in use; `restoring` does.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlite_utils import Database as SqliteDatabase

from ..language import _
from ..store import Store, opening, search
from ..store.migrations import MIGRATIONS
from ..store.served import note_removed_keys, removed_keys
from .manifest import COUNTED, Wrong, is_allowed

OWN_JUDGES = "judge.own.%"
RECEIPTS = "forgotten"
RECEIPT = {"at": str, "asked": dict, "counts": dict}
"""What every receipt has."""
TABLES = {"search"}
"""Virtual tables that may be there."""


def snapshot(store: Store, target: Path) -> None:
    """Copy the database as it is at one moment, whoever writes meanwhile, without what was deleted from it. A copy of
    an encrypted one is encrypted, with the same key.

    Raises:
        OSError: there is no room for the copy. StoreError: the database cannot be read.
    """
    copy = opening.connect(target, like=store.database.path)
    try:
        with store.database.read() as db:
            fits = _fits(db.conn.backup, copy)
        copy.execute("PRAGMA journal_mode = DELETE").fetchall()
        copy.execute("PRAGMA temp_store = MEMORY")
        if not (fits and _fits(copy.execute, "VACUUM")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        copy.close()


def _fits(work: Callable[..., object], argument: object) -> bool:
    """Do it; whether the disk of the copy had room. That disk may be another than the database's."""
    try:
        work(argument)
    except sqlite3.OperationalError as error:
        if "full" not in str(error):
            raise
        return False
    return True


def change_paths(connection: sqlite3.Connection, change: Callable[[str], str]) -> None:
    """Put every path to an adapter's file through `change`."""
    rows = connection.execute("select id, gguf_path, peft_dir from adapters").fetchall()
    for identity, *paths in rows:
        changed = [change(path) if path else "" for path in paths]
        connection.execute("update adapters set gguf_path = ?, peft_dir = ? where id = ?", (*changed, identity))
    query = "select name, value from flags where name like ? and value != ''"
    for name, value in connection.execute(query, (OWN_JUDGES,)).fetchall():
        kept = json.loads(value)
        changed_value = json.dumps({**kept, "path": change(kept["path"])})
        connection.execute("update flags set value = ? where name = ?", (changed_value, name))


def end_replies(connection: sqlite3.Connection) -> None:
    """Close the replies that were being written when the backup was made, with what was shown of them: whoever wrote
    them goes on there, not here."""
    waiting = "select id, chat_id, turn_type, created_at from messages where state = 'streaming'"
    for message_id, chat_id, turn_type, created_at in connection.execute(waiting).fetchall():
        pieces = connection.execute("select text from pieces where message_id = ? order by id", [message_id]).fetchall()
        text = "".join(piece for (piece,) in pieces)
        connection.execute(
            "update messages set content = ?, state = 'interrupted', writer = '' where id = ?", [text, message_id]
        )
        connection.execute("delete from pieces where message_id = ?", [message_id])
        if turn_type == "main":
            search.add(SqliteDatabase(connection), chat_id, message_id, text, created_at)


def paths_in(connection: sqlite3.Connection) -> list[str]:
    """Every path to an adapter's files."""
    found: list[str] = []

    def note(path: str) -> str:
        found.append(path)
        return path

    change_paths(connection, note)
    return found


def counts(connection: sqlite3.Connection) -> dict[str, int]:
    """How much there is of what a manifest counts. A chat's questions for its title are no messages to a person."""
    where = {"messages": " where turn_type = 'main'"}
    return {
        table: int(connection.execute(f"select count(*) from {table}{where.get(table, '')}").fetchone()[0])
        for table in COUNTED
    }


def migrations(connection: sqlite3.Connection) -> tuple[str, ...]:
    return tuple(name for (name,) in connection.execute("select name from migrations order by rowid"))


def check(path: Path) -> None:
    """Look through a database that comes from a file.

    Raises:
        Wrong: it is damaged, from a newer version, or holds what no backup of ours does.
    """
    connection = opening.connect(path)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        kinds = connection.execute("select type, name, coalesce(sql, '') from sqlite_master").fetchall()
        for kind, name, sql in kinds:
            if kind in ("trigger", "view") or (sql.lower().startswith("create virtual") and name not in TABLES):
                raise Wrong(_("holds a database with {name!r} in it, which no claw-local has made", name=name))
        if [word for (word,) in connection.execute("PRAGMA integrity_check(1)")] != ["ok"]:
            raise Wrong(_("holds a damaged database"))
        if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
            raise Wrong(_("holds a database that is not whole"))
        known = {migration.__name__ for migration in MIGRATIONS}
        if any(name not in known for name in migrations(connection)):
            raise Wrong(_("was written by a newer claw-local; update it first"))
        for found in paths_in(connection):
            if found and not is_allowed(found if found.count("/") > 1 else ""):
                raise Wrong(_("holds a database that names files outside of it"))
        if not are_receipts(receipts(connection)):
            raise Wrong(_("holds a database whose receipts of what was forgotten cannot be read"))
    except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, Wrong):
            raise
        raise Wrong(_("holds a database that cannot be read")) from error
    finally:
        connection.close()


def receipts(connection: sqlite3.Connection) -> str:
    row = connection.execute("select value from flags where name = ?", (RECEIPTS,)).fetchone()
    return str(row[0]) if row else ""


def are_receipts(value: str) -> bool:
    """Whether a flag's value is a list of receipts, or nothing."""
    try:
        found = json.loads(value or "[]")
    except (ValueError, RecursionError):
        return False
    return isinstance(found, list) and all(
        isinstance(one, dict) and all(isinstance(one.get(key), kind) for key, kind in RECEIPT.items()) for one in found
    )


@dataclass(frozen=True)
class Gone:
    """What is gone for good in a database: receipts of what was forgotten, as JSON text, and hashes of removed keys."""

    receipts: str = ""
    keys: tuple[str, ...] = ()


def gone(path: Path, like: Path) -> Gone:
    """What a database, a copy of another, knows of it; nothing where that cannot be read."""
    connection = opening.connect(path, like=like)
    try:
        found = receipts(connection)
        return Gone(found if are_receipts(found) else "", tuple(removed_keys(connection)))
    except sqlite3.Error:
        return Gone()
    finally:
        connection.close()


def join_gone(connection: sqlite3.Connection, known: Gone) -> None:
    """Keep what is known of what is gone: also what went after the backup was made. A removed key stays removed."""
    both = [*json.loads(receipts(connection) or "[]"), *json.loads(known.receipts or "[]")]
    by_time = {receipt["at"]: receipt for receipt in both}
    value = json.dumps([by_time[moment] for moment in sorted(by_time)])
    connection.execute("insert or replace into flags (name, value) values (?, ?)", (RECEIPTS, value))
    note_removed_keys(connection, [*removed_keys(connection), *known.keys])
