"""Encrypting the database, and making it plain again: written anew aside, checked, and put in place in one step.

Killed at any moment, the database is whole, plain or encrypted, and can be opened; doing it again ends what was begun.
The copies in the backups folder go the same way. It must never know what the tables mean.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from .. import leftovers
from ..errors import StoreError
from ..language import N_, _
from ..leftovers import aside
from ..paths import Paths
from . import cipher, opening, unlocking
from .failing import in_words
from .unlocking import Encryption, Key

BUSY_S = 3.0
UNNOTED = N_(
    "{path} is damaged, or it is encrypted and the note of it is gone. If it is, `claw-local encrypt on` makes the "
    "note anew from the passphrase; `claw-local doctor` says more."
)
PIECE = 1 << 20
Report = Callable[[str], None]


@dataclass(frozen=True)
class Done:
    """What was rewritten. `copies`: of those in the backups folder. `left`: those that could not be read."""

    database: bool
    copies: int
    left: tuple[Path, ...]


def encrypt(paths: Paths, new: Callable[[], tuple[Encryption, Key]], report: Report = lambda words: None) -> Done:
    """Encrypt the database and the copies of it in the backups folder.

    Args:
        new: gives the encryption, where there is none yet.

    Raises:
        StoreError: it cannot be done, and why; the database is as it was.
    """
    cipher.package()
    leftovers.sweep(paths.make())
    path = paths.database
    with _in_words(path):
        noted = unlocking.read(path)
        head = opening.begins(path)
        if head != opening.MAGIC and (noted is not None or head):
            # Encrypted already: what was left over is done, if anything.
            return Done(False, *_copies(paths, noted or _adopted(path, head), report))
        if noted is not None and any(not plain for _, plain in copies(paths)):
            raise StoreError(
                _(
                    "Making the store plain was begun and not finished. Run `claw-local encrypt "
                    "off` first; nothing was changed."
                )
            )
        encryption, key = new()
        if not leftovers.remove(paths.caches):  # What was said stands in them, as tokens.
            raise StoreError(
                _("{caches} cannot be deleted. Delete it, and try again; nothing was changed.", caches=paths.caches)
            )
        if head:
            report(_("encrypting the database"))
            _turn(path, None, key, before=lambda: encryption.write(paths.encryption))
        else:
            encryption.write(paths.encryption)  # There is none yet: it will be made so.
        unlocking.know(key)
        return Done(True, *_copies(paths, encryption, report))


def make_plain(paths: Paths, report: Report = lambda words: None) -> Done:
    """The way back. Raises StoreError: it cannot be done, and why; the database is as it was."""
    leftovers.sweep(paths)
    path = paths.database
    with _in_words(path):
        encryption = unlocking.read(path)
        if encryption is None and is_unnoted(path):
            raise StoreError(_(UNNOTED, path=path))
        if encryption is None:
            return Done(False, 0, ())
        cipher.package()
        key = unlocking.key_to(path, encryption)
        head = opening.begins(path)
        encrypted = head != opening.MAGIC
        if head and encrypted:
            report(_("making the database plain"))
            _turn(path, key, None)
        done = Done(encrypted, *_rewrite_copies(paths, key, None, report))
        paths.encryption.unlink()
        _sync(paths.encryption.parent)
        return done


def is_unnoted(path: Path) -> bool:
    """Whether a database is neither plain nor noted as encrypted."""
    return not unlocking.beside(path).exists() and opening.begins(path) not in (b"", opening.MAGIC)


def copies(paths: Paths) -> Iterator[tuple[Path, bool]]:
    """The copies of the database in the backups folder, and whether each is plain."""
    for pattern in ("*.db", f"*/{paths.database.name}"):
        for file in sorted(paths.backups.glob(pattern)):
            if file.is_file() and not file.is_symlink() and not file.name.startswith("."):
                with file.open("rb") as opened:
                    yield file, opened.read(len(opening.MAGIC)) == opening.MAGIC


def rewrite(path: Path, old: Key | None, new: Key | None) -> None:
    """Write a database that nobody uses anew under another key; None: plain. Its times stay.

    Raises:
        StoreError: it is not whole. sqlite3.Error, OSError: it cannot be read or written.
    """
    times = path.stat()
    _turn(path, old, new)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _copies(paths: Paths, encryption: Encryption, report: Report) -> tuple[int, tuple[Path, ...]]:
    if all(not plain for _, plain in copies(paths)):
        return 0, ()
    return _rewrite_copies(paths, None, unlocking.key_to(paths.database, encryption), report)


def _rewrite_copies(paths: Paths, old: Key | None, new: Key | None, report: Report) -> tuple[int, tuple[Path, ...]]:
    count, left = 0, []
    for file, plain in list(copies(paths)):
        if plain != (old is None):
            continue
        report(_("rewriting the copy {name}", name=file.name))
        try:
            rewrite(file, old, new)
            count += 1
        except (sqlite3.DatabaseError, StoreError):  # Damaged, or with another key.
            left.append(file)
    return count, tuple(left)


def _adopted(path: Path, head: bytes) -> Encryption:
    """An encrypted database whose note is gone gets it back. Raises StoreError: it is damaged, or of another key."""
    question = f"{path} is encrypted, or damaged. Its passphrase, if it is encrypted: "
    for source, text in unlocking.offered(question):
        encryption, key = unlocking.made(text, source, head)
        with suppress(sqlite3.DatabaseError), closing(opening.connect_with(key, path)) as connection:
            connection.execute("select count(*) from sqlite_master").fetchone()
            encryption.write(unlocking.beside(path))
            unlocking.know(key)
            return encryption
    raise StoreError(
        _(
            "{path} is damaged, or encrypted with another passphrase. Nothing was changed; "
            "`claw-local doctor` says more.",
            path=path,
        )
    )


def _turn(path: Path, old: Key | None, new: Key | None, before: Callable[[], None] = lambda: None) -> None:
    """Write a database anew under another key, and put it in the place of the old one, which nobody else may have open.

    Args:
        before: done once the new one is whole, before it is put in place.
    """
    opening.let_go(path)
    # It stays open to the very end: closing it ends this process's locks on the file.
    with path.open("r+b") as file, aside(path) as made, closing(_alone(path, old)) as source:
        os.close(os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        _export(source, made, new)
        _check(path, source, made, new)
        _sync(made)
        before()
        if os.name == "nt":  # Nothing that is open can be replaced there; that keeps others out, too.
            source.close()
            file.close()
        os.replace(made, path)
        _sync(path.parent)
        if old is None and os.name != "nt":
            _overwrite(file.fileno())


def _alone(path: Path, key: Key | None) -> sqlite3.Connection:
    """A connection that has the database to itself: the log is emptied, and nobody else has it open, or can read it."""
    connection = opening.able_to_export(key, path, timeout=BUSY_S)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        # Leaving the write-ahead log is refused while anybody else has the file open.
        (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        if mode != "delete":
            raise sqlite3.OperationalError("database is locked")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")  # In this mode, the lock stays.
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise StoreError(
                _(
                    "{path} is open in another program: a chat, the server or a learning run. "
                    "Close it, and try again; nothing was changed.",
                    path=path,
                )
            ) from error
        raise
    return connection


def _export(source: sqlite3.Connection, made: Path, new: Key | None) -> None:
    """All of a database, in the order it has, into an empty file."""
    (version,), (application,) = (
        source.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")
    )
    source.execute(f'ATTACH ? AS made KEY "{"" if new is None else new.literal}"', (str(made),))
    try:
        # What is half made is thrown away anyway: it needs no journal beside it, and is synced at the end.
        source.execute("PRAGMA made.journal_mode = OFF").fetchall()
        source.execute("PRAGMA made.synchronous = OFF").fetchall()
        source.execute("SELECT sqlcipher_export('made')").fetchall()
        source.execute(f"PRAGMA made.user_version = {int(version)}")
        source.execute(f"PRAGMA made.application_id = {int(application)}")
    finally:
        source.execute("DETACH made")


def _check(path: Path, source: sqlite3.Connection, made: Path, new: Key | None) -> None:
    """Raises StoreError: what was written is not whole, or not all that there was."""
    with closing(opening.connect_with(new, made)) as copy:
        faults = [str(row[0]) for row in copy.execute("PRAGMA integrity_check(1)") if row[0] != "ok"]
        if faults or _counts(copy) != _counts(source):
            raise StoreError(
                _(
                    "{path} cannot be written anew whole ({fault}). Nothing was changed; "
                    "`claw-local doctor` checks it.",
                    path=path,
                    fault=faults[0] if faults else _("rows are missing"),
                )
            )


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    """Rows of each table; those of the search index lie in tables of its own."""
    query = "select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\' and "
    query += "sql not like 'create virtual%'"
    quoted = [(str(name), str(name).replace('"', '""')) for (name,) in connection.execute(query)]
    return {name: int(connection.execute(f'select count(*) from "{table}"').fetchone()[0]) for name, table in quoted}


def _overwrite(descriptor: int) -> None:
    """Write over what was plain and has no name any more. On disks that write elsewhere each time, it helps little."""
    with suppress(OSError):
        left = os.fstat(descriptor).st_size
        os.lseek(descriptor, 0, os.SEEK_SET)
        while left > 0:
            left -= os.write(descriptor, bytes(min(left, PIECE)))
        os.fsync(descriptor)


def _sync(path: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _in_words:
    """Turns SQLite's and the system's errors into a `StoreError`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (sqlite3.Error, OSError)):
            raise StoreError(in_words(self._path, error, BUSY_S)) from error
