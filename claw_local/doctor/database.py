"""Is the database whole? Read without the store, read-only: that would migrate it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from ..errors import StoreError
from ..language import _
from ..paths import Paths
from ..store import opening
from ..store.failing import in_words, is_the_disk
from ..store.migrations import MIGRATIONS
from .check import Check, first_sentence, size, tidy

TIMEOUT_S = 10.0
SHOWN = 3
FULL_BYTES = 1 << 20
"""Less free space than that does not hold the index of a log."""


def check_database(paths: Paths) -> Check:
    """integrity_check, foreign_key_check, and whether a newer claw-local wrote it."""
    path = paths.database
    if not path.exists():
        return Check("database", "ok", _("not made yet; the first chat makes it"))
    try:
        connection = opening.connect(path, query="mode=ro", timeout=TIMEOUT_S)
        try:
            return _judge(path, paths, connection)
        finally:
            connection.close()
    except StoreError as error:
        what, remedy = first_sentence(str(error))
        return Check("database", "problem", _("was not looked at: {what}", what=tidy(what)), tidy(remedy))
    except sqlite3.DatabaseError as error:
        text = str(error)
        if "not a database" in text and opening.may_be_encrypted(path):
            return _unnoted(paths)
        if "not a database" in text or "malformed" in text:
            return _damaged(paths, text)
        if "locked" in text or "busy" in text:
            return Check(
                "database",
                "warning",
                _("{path} is locked by another program", path=tidy(path)),
                _("Close it, then ask the doctor again."),
            )
        if is_the_disk(error):
            return _unread(path, error)
        return Check(
            "database",
            "problem",
            _("{path} cannot be read: {text}", path=tidy(path), text=text),
            _("Make the file, and the folder it lies in, readable and writable by you."),
        )


def _unread(path: Path, error: sqlite3.DatabaseError) -> Check:
    """SQLite reads a database with a log only where it can write an index beside it. Chatting goes on in memory where
    the disk is full; where it is not, it fails."""
    what, remedy = first_sentence(in_words(path, error, TIMEOUT_S))
    full = shutil.disk_usage(path.parent).free < FULL_BYTES
    return Check(
        "database",
        "warning" if full else "problem",
        _("was not looked at: {what}", what=tidy(what)),
        tidy(remedy),
    )


def _judge(path: Path, paths: Paths, connection: sqlite3.Connection) -> Check:
    faults = _faults(connection)
    if faults:
        return _damaged(paths, "; ".join(fault.splitlines()[0] for fault in faults))
    strays = _strays(connection)
    if strays:
        tables = ", ".join(sorted({str(row[0]) for row in strays}))
        detail = _("{path} is damaged: rows that point at nothing in: {tables}", path=tidy(path), tables=tables)
        return Check("database", "problem", detail, _("`claw-local doctor --fix` takes them out, and keeps a copy."))
    newer = [name for name in _applied(connection) if name not in {step.__name__ for step in MIGRATIONS}]
    if newer:
        return Check(
            "database",
            "problem",
            _("{path} was written by a newer claw-local (it knows {newer})", path=tidy(path), newer=newer[0]),
            _("Update claw-local; nothing in the file was changed."),
        )
    told = {"path": tidy(path), "size": size(path.stat().st_size)}
    whole = (
        _("{path} ({size}, encrypted) is whole", **told)
        if opening.is_encrypted(path)
        else _("{path} ({size}) is whole", **told)
    )
    return Check("database", "ok", whole)


def has_strays_alone(path: Path) -> bool:
    """Whether rows that point at nothing are what is wrong in it."""
    try:
        with closing(opening.connect(path, query="mode=ro", timeout=TIMEOUT_S)) as connection:
            return not _faults(connection) and bool(_strays(connection))
    except (sqlite3.Error, StoreError):
        return False


def _faults(connection: sqlite3.Connection) -> list[str]:
    return [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({SHOWN})") if row[0] != "ok"]


def _strays(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute("PRAGMA foreign_key_check").fetchmany(SHOWN)


def _applied(connection: sqlite3.Connection) -> list[str]:
    if (
        connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'").fetchone()
        is None
    ):
        return []
    return [str(row[0]) for row in connection.execute("SELECT name FROM migrations")]


def _unnoted(paths: Paths) -> Check:
    return Check(
        "database",
        "problem",
        _("{database} is encrypted and the note of it is gone, or it is damaged", database=tidy(paths.database)),
        _(
            "Run `claw-local encrypt on`: with the passphrase it makes the note anew. If no "
            "passphrase that you know opens it: {way_back}",
            way_back=_back(paths),
        ),
    )


def _damaged(paths: Paths, what: str) -> Check:
    return Check(
        "database",
        "problem",
        _("{database} is damaged: {what}", database=tidy(paths.database), what=what),
        _back(paths),
    )


def _back(paths: Paths) -> str:
    copies = sorted(paths.backups.glob("*.db")) if paths.backups.is_dir() else []
    if not copies:
        return _(
            "Close claw-local, move the file and its -wal and -shm away, then start afresh "
            "(there is no backup copy yet)."
        )
    return _(
        "Close claw-local, move the file and its -wal and -shm away, then put back the newest copy ({copy}).",
        copy=tidy(copies[-1]),
    )
