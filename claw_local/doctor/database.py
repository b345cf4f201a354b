"""Is the database whole? Read without the store, read-only: that would migrate it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ..errors import StoreError
from ..paths import Paths
from ..store import opening
from ..store.migrations import MIGRATIONS
from .check import Check, size, tidy

TIMEOUT_S = 10.0
SHOWN = 3


def check_database(paths: Paths) -> Check:
    """integrity_check, foreign_key_check, and whether a newer claw-local wrote it."""
    path = paths.database
    if not path.exists():
        return Check("database", "ok", "not made yet; the first chat makes it")
    try:
        connection = opening.connect(path, query="mode=ro", timeout=TIMEOUT_S)
        try:
            return _judge(path, paths, connection)
        finally:
            connection.close()
    except StoreError as error:
        what, _, remedy = str(error).partition(". ")
        return Check("database", "problem", f"was not looked at: {tidy(what)}", tidy(remedy))
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
                f"{tidy(path)} is locked by another program",
                "Close it, then ask the doctor again.",
            )
        return Check(
            "database",
            "problem",
            f"{tidy(path)} cannot be read: {text}",
            "Make the file, and the folder it lies in, readable and writable by you.",
        )


def _judge(path: Path, paths: Paths, connection: sqlite3.Connection) -> Check:
    faults = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({SHOWN})") if row[0] != "ok"]
    if faults:
        return _damaged(paths, "; ".join(fault.splitlines()[0] for fault in faults))
    strays = connection.execute("PRAGMA foreign_key_check").fetchmany(SHOWN)
    if strays:
        tables = ", ".join(sorted({str(row[0]) for row in strays}))
        detail = f"{tidy(path)} is damaged: rows that point at nothing in: {tables}"
        return Check("database", "problem", detail, "`claw-local doctor --fix` takes them out, and keeps a copy.")
    newer = [name for name in _applied(connection) if name not in {step.__name__ for step in MIGRATIONS}]
    if newer:
        return Check(
            "database",
            "problem",
            f"{tidy(path)} was written by a newer claw-local (it knows {newer[0]})",
            "Update claw-local; nothing in the file was changed.",
        )
    kind = ", encrypted" if opening.is_encrypted(path) else ""
    return Check("database", "ok", f"{tidy(path)} ({size(path.stat().st_size)}{kind}) is whole")


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
        f"{tidy(paths.database)} is encrypted and the note of it is gone, or it is damaged",
        "Run `claw-local encrypt on`: with the passphrase it makes the note anew. If no passphrase that you know opens "
        f"it: {_back(paths)}.",
    )


def _damaged(paths: Paths, what: str) -> Check:
    return Check(
        "database",
        "problem",
        f"{tidy(paths.database)} is damaged: {what}",
        f"C{_back(paths)[1:]}.",
    )


def _back(paths: Paths) -> str:
    copies = sorted(paths.backups.glob("*.db")) if paths.backups.is_dir() else []
    back = f"put back the newest copy ({tidy(copies[-1])})" if copies else "start afresh (there is no backup copy yet)"
    return f"close claw-local, move the file and its -wal and -shm away, then {back}"
