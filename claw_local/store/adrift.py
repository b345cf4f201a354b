"""While the disk is full, fails or is read-only: all goes on in a copy in memory, and comes back when it can be kept.

What changes meanwhile is logged row by row, and only that is written back, so that what other programs wrote in between
stays. A number that was given twice by then is given anew here. It must never know what rows mean beyond which of them
point to which.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlite_utils import Database as SqliteDatabase

from ..language import N_, _
from . import opening, search
from .content import mark_of
from .failing import log_of, may_be_written

RETRY_S = 2.0
LARGEST = 1 << 30
"""Bytes; a larger database is not copied into memory."""
SENTENCE = N_(
    "The disk is full or fails, so the chat goes on in memory only. It is saved by itself as soon as {path} can be "
    "written again: free some space, and keep this program open until then."
)
READ_ONLY = N_(
    "{path} cannot be written, so it is only read: what is said or changed now is not kept. Make it and its folder "
    "writable, or set CLAW_LOCAL_HOME to another folder."
)
READING = N_("The disk is full or fails, so {path} is only read. Free some space before you say or change anything.")
LOST = N_(
    "{path} still cannot be written, so what was said or imported since the disk was full or failed is not kept. Free "
    "some space before you go on."
)
LOST_CHANGE = N_(
    "{path} could not be written, because the disk is full or fails, so what was to be changed stays as it was. Free "
    "some space, and try again."
)
LOST_READ_ONLY = N_(
    "{path} cannot be written, so what was said or changed is not kept. Make it and its folder writable, or set "
    "CLAW_LOCAL_HOME to another folder, before you go on."
)

_TABLES = ("chats", "messages", "pieces", "signals", "hints", "tool_calls")
_POINTS = {
    "chats": {"head_id": "messages"},
    "messages": {"chat_id": "chats", "parent_id": "messages"},
    "pieces": {"message_id": "messages"},
    "signals": {"message_id": "messages"},
    "hints": {"message_id": "messages", "chat_id": "chats"},
    "tool_calls": {"chat_id": "chats", "reply_id": "messages", "result_id": "messages"},
}
_PASSING = ("idle.activity", "gpu.wanted")
"""Switches that programs set by themselves all the time: of no use later, and no loss."""
_COMMANDED = ("learning", "idle.held", "profile.%")
"""Of the switches, those that a person sets outright: where a database may not be written, only these are missed."""
_REFUSED = {
    "adapters": ("insert", "delete", "update of state"),
    "served_keys": ("insert", "delete", "update of learn"),
}
"""What is never kept in memory only, and so is refused: whoever does it counts on it from then on."""


class Adrift:
    """A database in memory, begun as a copy of a file.

    Attributes:
        db: the copy. One connection for all threads; whoever uses it holds its lock.
        read_only: the file may not be written at all, however much room there is.
    """

    def __init__(self, path: Path) -> None:
        """Raises sqlite3.Error, OSError: the file cannot be read either, or is too large."""
        if path.stat().st_size > LARGEST:
            raise OSError("the database is too large for the memory")
        self._path = path
        self.read_only = not may_be_written(path)
        self._next_try = time.monotonic() + RETRY_S
        connection = opening.in_memory(path)
        _copy(path, connection)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA temp_store = MEMORY")
        self.db = SqliteDatabase(connection)
        if not all(self.db.table(table).exists() for table in (*_TABLES, "toolsets", "flags", *_REFUSED)):
            return  # Of an older version: whoever asked for it can see that, and must not write.
        self._last = {
            table: self.db.execute(f"select ifnull(max(id), 0) from {table}").fetchone()[0] for table in _TABLES
        }
        connection.execute("create temp table changed (tab text not null, id integer not null, unique (tab, id))")
        for table in _TABLES:
            for what, row in (("insert", "new"), ("update", "new"), ("delete", "old")):
                connection.execute(
                    f"create temp trigger log_{table}_{what} after {what} on main.{table} begin "
                    f"insert or ignore into changed values ('{table}', {row}.id); end"
                )
        connection.execute("create temp table switched (name text primary key)")
        passing = ", ".join(f"'{name}'" for name in _PASSING)
        commanded = " or ".join(f"{{row}}.name like '{name}'" for name in _COMMANDED)
        counts = commanded if self.read_only else f"{{row}}.name not in ({passing})"
        for what, row in (("insert", "new"), ("update", "new"), ("delete", "old")):
            connection.execute(
                f"create temp trigger log_flags_{what} after {what} on main.flags when {counts.format(row=row)} "
                f"begin insert or ignore into switched values ({row}.name); end"
            )
        reason = "attempt to write a readonly database" if self.read_only else "database or disk is full"
        for table, changes in _REFUSED.items():
            for number, what in enumerate(changes):
                connection.execute(
                    f"create temp trigger refuse_{table}_{number} before {what} on main.{table} "
                    f"begin select raise(abort, '{reason}'); end"
                )

    def come_back(self, *, at_once: bool = False) -> bool:
        """Try to write what changed into the file, all or nothing; whether it is there. Between tries it rests."""
        if not at_once and time.monotonic() < self._next_try:
            return False
        self._next_try = time.monotonic() + RETRY_S
        query = "select 1 from temp.changed union all select 1 from temp.switched limit 1"
        if not self.db.execute(query).fetchall():
            return at_once  # Writing nothing would prove nothing.
        try:
            with _transaction(self._path) as there:
                if mark_of(there) != mark_of(self.db.conn):
                    return False  # A backup was restored: these numbers mean other chats there.
                self._write(there)
        except (sqlite3.Error, OSError):
            return False
        return True

    @property
    def sentence(self) -> str:
        return _(READ_ONLY if self.read_only else SENTENCE, path=self._path)

    @property
    def reading(self) -> str:
        """The same for whoever will say nothing: it is only read."""
        return _(READ_ONLY if self.read_only else READING, path=self._path)

    @property
    def lost(self) -> str:
        """A sentence for whoever closes it, where something of it still cannot be written."""
        if self.read_only:
            return _(LOST_READ_ONLY, path=self._path)
        said = any(identity > self._last["messages"] for identity in self._changed("messages"))
        return _(LOST if said else LOST_CHANGE, path=self._path)

    def nothing_new(self) -> None:
        """What changed so far need not be written: whoever opens the file does it again."""
        self.db.execute("delete from temp.changed")
        self.db.execute("delete from temp.switched")

    def close(self) -> None:
        self.db.conn.close()

    def _write(self, there: sqlite3.Connection) -> None:
        db = SqliteDatabase(there)
        renamed: dict[str, dict[int, int]] = {table: {} for table in _TABLES}
        titles: list[int] = []
        texts: list[int] = []
        heads: list[int] = []
        for table in _TABLES:
            for identity in self._changed(table):
                mine = self._row(self.db.conn, table, identity)
                theirs = self._row(there, table, identity)
                if mine is None:
                    if theirs is not None and identity <= self._last[table]:
                        self._remove(db, table, identity)
                    continue
                new = identity > self._last[table]
                columns = self._pointed(there, table, mine, renamed)
                if theirs is None or new:
                    if theirs is not None:
                        del columns["id"]  # Another program gave this number meanwhile.
                    marks = ", ".join("?" * len(columns))
                    names = ", ".join(f'"{name}"' for name in columns)
                    made = there.execute(f"insert into {table} ({names}) values ({marks})", list(columns.values()))
                    renamed[table][identity] = int(made.lastrowid or identity)
                else:
                    sets = ", ".join(f'"{name}" = ?' for name in columns)
                    there.execute(f"update {table} set {sets} where id = ?", [*columns.values(), identity])
                here = renamed[table].get(identity, identity)
                if table == "chats":
                    heads.append(identity)
                    if theirs is None or new or theirs["title"] != mine["title"]:
                        if theirs is not None and not new:
                            search.remove_title(db, here, theirs["title"])
                        titles.append(here)
                elif table == "messages" and (theirs is None or new or theirs["content"] != mine["content"]):
                    texts.append(here)
        for identity in heads:
            head = self._row(self.db.conn, "chats", identity)
            if head is not None:
                renamed_head = renamed["messages"].get(head["head_id"], head["head_id"])
                there.execute(
                    "update chats set head_id = ? where id = ?",
                    (renamed_head, renamed["chats"].get(identity, identity)),
                )
        self._index(db, titles, texts)
        self._write_switches(there)

    def _write_switches(self, there: sqlite3.Connection) -> None:
        for (name,) in self.db.execute("select name from temp.switched").fetchall():
            there.execute("delete from flags where name = ?", (name,))
            for (value,) in self.db.execute("select value from flags where name = ?", [name]).fetchall():
                there.execute("insert into flags (name, value) values (?, ?)", (name, value))

    @staticmethod
    def _index(db: SqliteDatabase, titles: list[int], texts: list[int]) -> None:
        for identity in titles:
            for title, created_at in db.execute(
                "select title, created_at from chats where id = ?", [identity]
            ).fetchall():
                search.add(db, identity, None, title, created_at)
        query = (
            "select chat_id, content, created_at from messages where id = ? and turn_type = 'main' and "
            "state != 'streaming' and not exists (select 1 from search_docs where message_id = messages.id)"
        )
        for identity in texts:
            for chat_id, content, created_at in db.execute(query, [identity]).fetchall():
                search.add(db, chat_id, identity, content, created_at)

    def _changed(self, table: str) -> list[int]:
        rows = self.db.execute("select id from temp.changed where tab = ? order by id", [table]).fetchall()
        return [row[0] for row in rows]

    @staticmethod
    def _row(connection: sqlite3.Connection, table: str, identity: int) -> dict[str, Any] | None:
        cursor = connection.execute(f"select * from {table} where id = ?", (identity,))
        names = [column[0] for column in cursor.description]
        row = cursor.fetchone()
        return None if row is None else dict(zip(names, row, strict=True))

    def _pointed(
        self, there: sqlite3.Connection, table: str, row: dict[str, Any], renamed: dict[str, dict[int, int]]
    ) -> dict[str, Any]:
        """A row with what it points to under its number in the file; what is gone there is pointed to no more."""
        columns = dict(row)
        for column, other in _POINTS[table].items():
            value = columns.get(column)
            if not isinstance(value, int):
                continue
            value = renamed[other].get(value, value)
            gone = there.execute(f"select 1 from {other} where id = ?", (value,)).fetchone() is None
            if gone and column == "chat_id" and table == "messages":
                chat = self._row(self.db.conn, "chats", value)  # Deleted by another program: what was said since stays.
                if chat is not None:
                    names = ", ".join(f'"{name}"' for name in chat)
                    marks = ", ".join("?" * len(chat))
                    there.execute(f"insert into chats ({names}) values ({marks})", list(chat.values()))
                    gone = False
            columns[column] = None if gone and column in ("parent_id", "head_id") else value
        if columns.get("toolset_id"):
            columns["toolset_id"] = self._toolset(there, columns["toolset_id"])
        return columns

    def _toolset(self, there: sqlite3.Connection, identity: int) -> int | None:
        """The number in the file of a set of tools that a reply was told of; each set is kept once, by its text."""
        row = self._row(self.db.conn, "toolsets", identity)
        if row is None:
            return None
        for (known,) in there.execute("select id from toolsets where specs = ?", (row["specs"],)).fetchall():
            return int(known)
        return int(there.execute("insert into toolsets (specs) values (?)", (row["specs"],)).lastrowid or 0)

    @staticmethod
    def _remove(db: SqliteDatabase, table: str, identity: int) -> None:
        if table == "chats":
            search.remove_chat(db, identity)
        elif table == "messages":
            search.remove_messages(db, [identity])
        db.conn.execute(f"delete from {table} where id = ?", (identity,))


def _copy(path: Path, target: sqlite3.Connection) -> None:
    """Read the whole file. Where not even what SQLite puts beside it can be made, and there is no log, it is read as
    one that nobody changes: on a full disk nobody does."""
    alone = log_of(path) is None
    for options in ("", "immutable=1") if alone else ("",):
        try:
            with closing(opening.connect(path, query=options)) as source:
                source.backup(target)
            return
        except sqlite3.OperationalError:
            if options or not alone:
                raise


@contextmanager
def _transaction(path: Path) -> Iterator[sqlite3.Connection]:
    connection = opening.settled(path, lambda: _begun(path))
    try:
        connection.execute("PRAGMA defer_foreign_keys = ON")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    finally:
        connection.close()


def _begun(path: Path) -> sqlite3.Connection:
    connection = opening.connect(path, timeout=1.0)
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
    except BaseException:
        connection.close()
        raise
    return connection
