"""Opening the database: pragmas, file modes, migrations, one connection a thread, errors in words.

It must never know what the tables mean.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from sqlite_utils import Database as SqliteDatabase
from sqlite_utils.db import NotFoundError as MissingRow

from ..errors import DiskError, NotFoundError, StoreError
from ..language import N_, _
from ..leftovers import aside, remove
from ..paths import Paths
from . import opening
from .adrift import Adrift
from .content import Content
from .failing import in_words, is_read_only, is_the_disk
from .migrations import MIGRATIONS, Migration

T = TypeVar("T")
BUSY_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 5.0
CLOSED = N_("The store is closed. Open the assistant again.")


def now() -> str:
    """The time as it is stored: UTC, ISO 8601, to the microsecond, so that text order is time order."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Database(Content):
    """One SQLite file, safe for many threads and processes."""

    def __init__(self, paths: Paths, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
        self.path = paths.database
        self._backups, self._caches = paths.backups, paths.caches
        self._local = threading.local()
        # Each with a lock that its thread holds while it is at work: closing it then would crash the process.
        self._connections: dict[sqlite3.Connection, threading.RLock] = {}
        self._guard = threading.Lock()
        self._closed = False
        self._adrift: Adrift | None = None
        paths.make()
        try:
            with self.errors_in_words():
                self._create_private()
                self._migrate(migrations)
        except DiskError as error:
            # One that is up to date can be read, and what is said now kept in memory.
            if not self._cast_off():
                raise
            self._must_be_up_to_date([migration.__name__ for migration in migrations], error)
        self.accept()

    @property
    def db(self) -> SqliteDatabase:
        """This thread's connection."""
        if self._closed:
            raise StoreError(_(CLOSED))
        found: SqliteDatabase | None = getattr(self._local, "db", None)
        # Whoever is in the middle of a transaction ends it where it was begun.
        if self._adrift is not None and not (found is not None and found.conn.in_transaction):
            return self._adrift.db
        if found is None:
            found = self._local.db = self._connect()
        return found

    @contextmanager
    def read(self) -> Iterator[SqliteDatabase]:
        """Read, with SQLite's errors turned into `StoreError`."""
        with self.errors_in_words(), self._using() as db:
            yield db

    @contextmanager
    def _using(self) -> Iterator[SqliteDatabase]:
        while True:
            db = self.db
            with self._connections[db.conn]:
                if self._closed:
                    raise StoreError(_(CLOSED))
                if db is not self.db and not db.conn.in_transaction:
                    continue  # What was in memory has just been written to the disk.
                yield db
                return

    @contextmanager
    def write(self) -> Iterator[SqliteDatabase]:
        """One transaction that holds the write lock from its start, all or nothing; nested calls join it.

        Raises RestoredError: a backup has put other content in place since this was opened; see `accept`.
        """
        self._come_back()
        with self.errors_in_words(), self._using() as db:
            if db.conn.in_transaction:
                yield db
                return
            db.conn.execute("BEGIN IMMEDIATE")
            self._local.writing = True
            try:
                self._check_content(db.conn)
                yield db
                db.conn.execute("COMMIT")
            except BaseException:
                if db.conn.in_transaction:
                    db.conn.execute("ROLLBACK")
                raise
            finally:
                self._local.writing = False

    def keeping(self, work: Callable[[], T]) -> T:
        """Do something that writes, all or nothing. If the disk is full, fails or is read-only, it is done on a copy in
        memory, and so is all that follows, until it can be written: see `adrift`. Inside a transaction it is simply
        done.

        Raises:
            DiskError: the database cannot be read any more either, or is too large to be copied.
        """
        try:
            return work()
        except DiskError:
            if self._adrift is not None or not self._cast_off():
                raise
            return work()

    @property
    def adrift(self) -> str:
        """A sentence for the person while what is said is kept in memory only; else ""."""
        adrift = self._adrift
        return "" if adrift is None else adrift.sentence

    @property
    def only_read(self) -> str:
        """The same for whoever says and changes nothing."""
        adrift = self._adrift
        return "" if adrift is None else adrift.reading

    def nothing_new(self) -> None:
        """What was changed since this was opened need not be written, if it is in memory only: it is done again by
        whoever opens the file."""
        if self._adrift is not None:
            with self._connections[self._adrift.db.conn]:
                self._adrift.nothing_new()

    def save(self) -> bool:
        """Write what is kept in memory only to the disk now, if it takes it. Whether nothing is left in memory."""
        self._come_back(at_once=True)
        return self._adrift is None

    def _cast_off(self) -> bool:
        with self._guard:
            if self._adrift is not None:
                return True
            if getattr(self._local, "writing", False):
                return False  # Half of a transaction cannot be done again.
            try:
                adrift = Adrift(self.path)
            except (sqlite3.Error, OSError, MemoryError):
                return False
            self._connections[adrift.db.conn] = threading.RLock()
            self._adrift = adrift
            return True

    def _come_back(self, *, at_once: bool = False) -> None:
        """Write what is in memory only to the disk, if there is anything and it can be done by now."""
        adrift = self._adrift
        if adrift is None:
            return
        lock = self._connections[adrift.db.conn]
        with lock:
            if self._adrift is adrift and not adrift.db.conn.in_transaction and adrift.come_back(at_once=at_once):
                self._adrift = None

    @contextmanager
    def erasing(self) -> Iterator[None]:
        """What is deleted meanwhile is overwritten on the disk, and the log it passed through emptied if nobody reads
        it at that moment. What was computed from texts, the caches of chats, goes with them, whosever they are."""
        with self.read() as db:
            db.conn.execute("PRAGMA secure_delete = ON")
            try:
                yield
                remove(self._caches)
                db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                db.conn.execute("PRAGMA secure_delete = OFF")

    def close(self) -> None:
        """Close the connections. One whose thread is at work is waited for, and left to the end of the process if that
        takes too long.

        Raises:
            DiskError: what was said while the disk was full or failed still cannot be written, and ends here.
        """
        if self._closed:
            return
        self._come_back(at_once=True)
        lost = "" if self._adrift is None else self._adrift.lost
        self._closed = True
        with self._guard:
            connections = list(self._connections.items())
        for connection, lock in connections:
            if lock.acquire(timeout=CLOSE_TIMEOUT_S):
                try:
                    connection.close()
                finally:
                    lock.release()
        if lost:
            raise DiskError(lost)

    @contextmanager
    def errors_in_words(self) -> Iterator[None]:
        try:
            yield
        except OverflowError as error:
            raise NotFoundError(_("There is nothing with that number: it is larger than any id can be.")) from error
        except MissingRow as error:
            raise NotFoundError(_("What this belongs to is not there any more: it was deleted meanwhile.")) from error
        except (sqlite3.Error, OSError) as error:
            if is_the_disk(error) or is_read_only(self.path, error):
                raise DiskError(in_words(self.path, error, BUSY_TIMEOUT_S)) from error
            raise StoreError(in_words(self.path, error, BUSY_TIMEOUT_S)) from error

    def _create_private(self) -> None:
        # SQLite gives the WAL and shared-memory files the mode of the database itself. One that is there is not opened
        # here: closing it again would end the locks of this process.
        if not self.path.exists():
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))

    def _connect(self) -> SqliteDatabase:
        connection = opening.settled(self.path, self._begun)
        with self._guard:
            self._connections[connection] = threading.RLock()
        return SqliteDatabase(connection)

    def _begun(self) -> sqlite3.Connection:
        connection = opening.connect(self.path, timeout=BUSY_TIMEOUT_S, cached_statements=256)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            # From here on it holds a lock, so that nobody puts another file in the place of this one.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA temp_store = MEMORY")
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self, migrations: tuple[Migration, ...]) -> None:
        known = [migration.__name__ for migration in migrations]
        if self._applied() == known:
            return
        applied = self._applied()
        self._refuse_newer(applied, known)
        if applied:
            with self.write():
                # Looked up again under the write lock, here as below: another process may have been quicker.
                applied = self._applied()
                if len(applied) < len(known):
                    self._back_up(f"before-{known[len(applied)]}")
        with self.write() as db:
            db.conn.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)")
        with self._rebuilding() as rebuilt:
            for migration in migrations:
                with self.write() as db:
                    if migration.__name__ not in self._applied():
                        migration(db)
                        rebuilt(migration.__name__)
                        db.table("migrations").insert({"name": migration.__name__, "applied_at": now()})

    def _refuse_newer(self, applied: list[str], known: list[str]) -> None:
        newer = [name for name in applied if name not in known]
        if newer:
            raise StoreError(
                _(
                    "{path} was written by a newer claw-local (it knows {newer}). Update "
                    "claw-local; nothing in the file was changed.",
                    path=self.path,
                    newer=newer[0],
                )
            )

    def _must_be_up_to_date(self, known: list[str], error: DiskError) -> None:
        """Raises StoreError: what was read into memory, as it could not be written for this, is of another version."""
        applied = self._applied()
        self._refuse_newer(applied, known)
        if applied != known and self._adrift is not None and self._adrift.read_only:
            raise StoreError(
                _(
                    "{path} was written by an older claw-local, and cannot be written to bring it up to date. Make it "
                    "writable, or copy its folder to where it can be written and set CLAW_LOCAL_HOME to the copy.",
                    path=self.path,
                )
            ) from error
        if applied != known:
            raise error

    @contextmanager
    def _rebuilding(self) -> Iterator[Callable[[str], None]]:
        """Let whole tables be written anew meanwhile: foreign keys are checked by the function this gives, not at each
        step, and of the old table nothing stays readable on the disk."""

        def check(name: str) -> None:
            lost = connection.execute("PRAGMA foreign_key_check").fetchall()
            if lost:
                raise StoreError(
                    _(
                        "{path} could not be brought up to date ({name}): {count} rows of "
                        "{table} point to rows that are gone. Nothing in it was changed; "
                        "`claw-local doctor` checks it.",
                        path=self.path,
                        name=name,
                        count=len(lost),
                        table=lost[0][0],
                    )
                )

        connection = self.db.conn
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA secure_delete = ON")
        # A person's own view of a table must not keep it from being written anew.
        connection.execute("PRAGMA legacy_alter_table = ON")
        try:
            yield check
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.execute("PRAGMA legacy_alter_table = OFF")
            connection.execute("PRAGMA secure_delete = OFF")
            connection.execute("PRAGMA foreign_keys = ON")

    def _applied(self) -> list[str]:
        db = self.db
        if not db.table("migrations").exists():
            return []
        return [row["name"] for row in db.table("migrations").rows_where(order_by="rowid")]

    def _back_up(self, name: str) -> Path:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        target = self._backups / f"{stamp}-{name}.db"
        with aside(target) as made:
            os.close(os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            # By a connection of its own: one that holds the write lock cannot be copied from.
            with (
                closing(opening.connect(self.path)) as source,
                closing(opening.connect(made, like=self.path)) as copy,
            ):
                source.backup(copy)
            with made.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(made, target)
        return target
