"""The one place where the database and copies of it are opened, plain or encrypted. It must never know what is in them.

A plain one is opened by Python's own `sqlite3`, one that is noted as encrypted by SQLCipher; both are used alike, and
raise the same errors.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from . import cipher, unlocking
from .unlocking import Key

TIMEOUT_S = 5.0
MAGIC = b"SQLite format 3\0"
"""How a plain database begins."""
PAGE = 4096
"""Bytes of a page, as SQLite and SQLCipher have it unless they are told otherwise."""

_peeked: dict[Path, tuple[tuple[int, int], int]] = {}
_guard = threading.Lock()


def connect(
    path: Path,
    *,
    like: Path | None = None,
    timeout: float = TIMEOUT_S,
    query: str = "",
    cached_statements: int = 128,
) -> sqlite3.Connection:
    """Open a database for any thread, without transactions of the module's own.

    Args:
        like: another database whose key this one has, or is to have: a copy of it.
        timeout: how long a lock is waited for, in seconds.
        query: of SQLite's URI, such as "mode=ro".

    Raises:
        StoreError: it is encrypted, and there is no key, a wrong one, or no SQLCipher. sqlite3.Error: as sqlite3.
    """
    return connect_with(
        key_of(path if like is None else like), path, timeout=timeout, query=query, cached_statements=cached_statements
    )


def connect_with(
    key: Key | None, path: Path, *, timeout: float = TIMEOUT_S, query: str = "", cached_statements: int = 128
) -> sqlite3.Connection:
    """The same with a key that is at hand; None: a plain one."""
    named = f"file:{quote(path.as_posix())}?{query}" if query else str(path)
    return _opened(key, named, timeout, uri=bool(query), cached_statements=cached_statements)


def able_to_export(key: Key | None, path: Path, *, timeout: float = TIMEOUT_S) -> sqlite3.Connection:
    """The same through SQLCipher even where it is plain: only so can it be copied into one with another key."""
    return _opened(key, str(path), timeout, uri=False, cached_statements=128, module=cipher.package())


def in_memory(like: Path) -> sqlite3.Connection:
    """An empty database in memory that a database can be copied into, and copied from."""
    return _opened(key_of(like), ":memory:", TIMEOUT_S, uri=False, cached_statements=128)


def _opened(
    key: Key | None, named: str, timeout: float, *, uri: bool, cached_statements: int, module: Any = None
) -> sqlite3.Connection:
    if module is None:
        module = sqlite3 if key is None else cipher.package()
    connection = module.connect(
        named,
        timeout=timeout,
        uri=uri,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=cached_statements,
    )
    if key is not None:
        connection.execute("PRAGMA cipher_log_level = NONE").fetchall()
        connection.execute(f'PRAGMA key = "{key.literal}"').fetchall()
    return cast(sqlite3.Connection, connection)


def key_of(path: Path, *, named: Path | None = None) -> Key | None:
    """The key of a database; None: it is plain. `named`: what to call it where the person is asked for the key.

    Raises:
        StoreError: there is none, or a wrong one.
    """
    encryption = unlocking.read(path)
    # Plain in spite of the note: encrypting it was not finished, or the note is about to go.
    if encryption is None or begins(path) == MAGIC:
        return None
    return unlocking.key_to(named or path, encryption)


def is_encrypted(path: Path) -> bool:
    """Whether it is kept encrypted, as far as can be said without its key."""
    return unlocking.beside(path).exists() and begins(path) != MAGIC


def may_be_encrypted(path: Path) -> bool:
    """Whether a database without a note looks like an encrypted one: it does not begin as a plain one does, and is made
    of whole pages."""
    if unlocking.beside(path).exists() or begins(path) in (b"", MAGIC):
        return False
    try:
        return path.stat().st_size % PAGE == 0
    except OSError:
        return False


def begins(path: Path) -> bytes:
    """The first 16 bytes of a database; fewer, where there are none.

    The file is read, but stays open: if a process closes any descriptor of a file, it loses its locks on it.
    """
    if os.name == "nt":
        try:
            with path.open("rb") as file:
                return file.read(len(MAGIC))
        except OSError:
            return b""
    with _guard:
        place = identity(path)
        kept = _peeked.get(path)
        if place is None or kept is None or kept[0] != place:
            _let_go(path)
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return b""
            found = os.fstat(descriptor)
            kept = _peeked[path] = ((found.st_dev, found.st_ino), descriptor)
        return os.pread(kept[1], len(MAGIC), 0)


def let_go(path: Path) -> None:
    """Close what `begins` left open. Nothing of this process may have that file open meanwhile."""
    with _guard:
        _let_go(path)


def _let_go(path: Path) -> None:
    kept = _peeked.pop(path, None)
    if kept is not None:
        os.close(kept[1])


def identity(path: Path) -> tuple[int, int] | None:
    """Which file that is; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def settled(path: Path, begin: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """Open a file and take a lock on it by `begin`; again, if another file was put in its place before the lock was
    there: whoever wrote into the old one then would write into nothing."""
    while True:
        before = identity(path)
        try:
            connection = begin()
        except sqlite3.Error:
            if before is None or identity(path) in (None, before):
                raise
            continue
        if before is None or identity(path) == before:
            return connection
        connection.close()
