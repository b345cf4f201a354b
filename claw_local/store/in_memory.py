"""A database that is never on disk: it lives in this process, and is gone when it is closed.

It must never know what the tables mean.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlite_utils import Database as SqliteDatabase

from ..paths import Paths
from .database import Database


class InMemoryDatabase(Database):
    """One connection for all threads, one at a time: a second one would open an empty database of its own."""

    def __init__(self, paths: Paths) -> None:
        self._one = threading.RLock()
        self._shared: SqliteDatabase | None = None
        super().__init__(paths)

    @property
    def db(self) -> SqliteDatabase:
        self._local.db = self._shared
        self._shared = super().db
        return self._shared

    @contextmanager
    def read(self) -> Iterator[SqliteDatabase]:
        with self._one, super().read() as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[SqliteDatabase]:
        with self._one, super().write() as db:
            yield db

    def close(self) -> None:
        with self._one:
            super().close()

    def _create_private(self) -> None:
        pass  # There is no file.

    def _connect(self) -> SqliteDatabase:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA foreign_keys = ON")
        # What SQLite sorts must not go to the disk either.
        connection.execute("PRAGMA temp_store = MEMORY")
        with self._guard:
            self._connections[connection] = threading.RLock()
        return SqliteDatabase(connection)
