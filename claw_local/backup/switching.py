"""Putting an unpacked and checked backup in the place of what is here: all of it, or nothing.

The database in use is written over through SQLite itself, in one transaction, so that programs that have it open go on
with the new content and never meet half of it. They write into it only once they have let go of the numbers they knew
(`store.content`). What was there before is kept in the backups folder. It must never look into the backup's file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ..errors import BackupError, StoreError
from ..files import write_whole
from ..language import _
from ..leftovers import remove
from ..paths import Paths
from ..store import opening, unlocking
from ..store.content import mark_anew
from ..store.processes import process_lives
from ..store.unlocking import Key
from . import tables
from .manifest import DATABASE, SETTINGS, Manifest

BUSY_S = 30.0


def check_idle(paths: Paths) -> None:
    """Raises BackupError: a learning run is going on here."""
    if not paths.database.is_file():
        return
    try:
        connection = opening.connect(paths.database, timeout=BUSY_S)
        try:
            rows = connection.execute("select process from runs where state = 'running'").fetchall()
        finally:
            connection.close()
    except sqlite3.Error:
        return  # Damaged, or not a database: what a backup is there for.
    if any(process_lives(process) for (process,) in rows):
        raise BackupError(_("A learning run is going on. Wait for it to end, and restore then."))


@dataclass
class Switch:
    """Puts what was unpacked and checked in place; on any failure, all is put back. `key`: of the unpacked database."""

    paths: Paths
    staging: Path
    manifest: Manifest
    key: Key | None = None
    undo: list[Callable[[], object]] = field(default_factory=list)
    damaged: bool = False

    def run(self) -> Path | None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        before = self.paths.backups / f"{stamp}-before-restore"
        before.mkdir(mode=0o700)
        self.undo.append(lambda: shutil.rmtree(before, ignore_errors=True))
        try:
            known = self._keep(before)
            renamed = self._place_adapters(stamp)
            self._fit_database(known, renamed)
            self._place_files()
            check_idle(self.paths)  # Unpacking took a while.
            self._switch_database(before)
        except BaseException:
            for step in reversed(self.undo):
                step()
            raise
        self._put_old_adapters_away(before)
        remove(self.paths.caches)  # Of chats that these numbers do not mean any more.
        if not any(before.iterdir()):
            before.rmdir()
            return None
        return before

    def _keep(self, before: Path) -> tables.Gone:
        """Copy what is here into the folder. Returns what is known here of what is gone for good."""
        for name, path in ((SETTINGS, self.paths.settings),):
            if path.is_file():
                shutil.copy2(path, before / name)
        if self.paths.themes.is_dir():
            shutil.copytree(self.paths.themes, before / "themes")
        if not self.paths.database.is_file():
            return tables.Gone()
        copy_path = before / DATABASE
        os.close(os.open(copy_path, os.O_RDWR | os.O_CREAT, 0o600))
        live = opening.connect(self.paths.database, timeout=BUSY_S)
        copy = opening.connect(copy_path, like=self.paths.database)
        try:
            live.backup(copy, progress=_patient)
        except sqlite3.OperationalError as error:
            raise BackupError(
                _(
                    "What is here now cannot be copied to {before} first ({error}). Free some "
                    "space, or close other programs, and restore again; all is as it was.",
                    before=before,
                    error=error,
                )
            ) from error
        except sqlite3.DatabaseError:  # Damaged: kept as it is, when it has to make room.
            copy.close()
            copy_path.unlink(missing_ok=True)
            self.damaged = True
            return tables.Gone()
        finally:
            live.close()
            copy.close()
        return tables.gone(copy_path, self.paths.database)

    def _place_adapters(self, stamp: str) -> dict[str, str]:
        """Move the adapters' folders in. Returns those that got another name because theirs was taken."""
        renamed: dict[str, str] = {}
        unpacked = self.staging / "adapters"
        for folder in sorted(unpacked.iterdir()) if unpacked.is_dir() else []:
            target = self.paths.adapters / folder.name
            if target.exists():
                if _hashes(target) == _hashes(folder):
                    continue
                renamed[folder.name] = f"{folder.name}-{stamp}"
                target = self.paths.adapters / renamed[folder.name]
            os.rename(folder, target)
            self.undo.append(partial(shutil.rmtree, target, ignore_errors=True))
        return renamed

    def _fit_database(self, known: tables.Gone, renamed: dict[str, str]) -> None:
        """Make the paths in the unpacked database those of this home, and let what is gone stay gone."""

        def here(path: str) -> str:
            _, folder, *rest = path.split("/")
            return str(self.paths.adapters.joinpath(renamed.get(folder, folder), *rest))

        connection = opening.connect_with(self.key, self.staging / DATABASE)
        try:
            connection.execute("BEGIN")
            tables.change_paths(connection, lambda path: here(path) if path else "")
            tables.join_gone(connection, known)
            tables.end_replies(connection)
            mark_anew(connection)
            # A run that was going on in the home the backup is of goes on there, not here.
            connection.execute(
                "update runs set state = 'failed', process = '', detail = ? where state = 'running'",
                ("It was going on when the backup was made.",),
            )
            connection.execute("COMMIT")
        finally:
            connection.close()

    def _place_files(self) -> None:
        names = [name for name in self.manifest.files if name == SETTINGS or name.startswith("themes/")]
        for name in names:
            target = self.paths.settings if name == SETTINGS else self.paths.themes / name.removeprefix("themes/")
            old = target.read_bytes() if target.is_file() else None

            def put_back(target: Path = target, old: bytes | None = old) -> None:
                target.unlink(missing_ok=True) if old is None else write_whole(target, old)

            self.undo.append(put_back)
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(target, self.staging.joinpath(*name.split("/")).read_bytes())

    def _switch_database(self, before: Path) -> None:
        """The last step: the content of the database, in one transaction."""
        new = self.staging / DATABASE
        try:
            if self.damaged or not self.paths.database.is_file() or self.paths.database.stat().st_size == 0:
                raise sqlite3.DatabaseError("there is none")
            source, live = opening.connect_with(self.key, new), opening.settled(self.paths.database, self._live)
            try:
                source.backup(live, progress=_patient)
                live.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                source.close()
                live.close()
        except sqlite3.OperationalError as error:
            raise BackupError(
                _(
                    "{database} is held by another program ({error}). Close it and restore again; all is as it was.",
                    database=self.paths.database,
                    error=error,
                )
            ) from error
        except sqlite3.DatabaseError:
            # None there, or one that is no database any more: nobody can be using it.
            for suffix in ("", "-wal", "-shm"):
                old = self.paths.database.with_name(self.paths.database.name + suffix)
                if old.exists():
                    os.replace(old, before / old.name)
                    self.undo.append(partial(os.replace, before / old.name, old))
            if self.key is not None and not self.paths.encryption.exists():
                self.undo.append(partial(self.paths.encryption.unlink, missing_ok=True))
                write_whole(self.paths.encryption, unlocking.beside(new).read_bytes())
            os.replace(new, self.paths.database)

    def _live(self) -> sqlite3.Connection:
        live = opening.connect(self.paths.database, timeout=BUSY_S)
        try:
            live.execute("PRAGMA journal_mode = WAL").fetchall()
        except BaseException:
            live.close()
            raise
        return live

    def _put_old_adapters_away(self, before: Path) -> None:
        connection = opening.connect(self.paths.database, timeout=BUSY_S)
        try:
            kept = {
                Path(path).relative_to(self.paths.adapters).parts[0] for path in tables.paths_in(connection) if path
            }
        except (sqlite3.Error, ValueError) as error:
            raise StoreError(
                _("The restored database cannot be read: {error}. Run `claw-local doctor`.", error=error)
            ) from error
        finally:
            connection.close()
        # The backup is in place: what cannot be moved stays where it is, and is in nobody's way.
        with suppress(OSError):
            for entry in sorted(self.paths.adapters.iterdir()):
                if entry.name not in kept:
                    (before / "adapters").mkdir(exist_ok=True, mode=0o700)
                    os.rename(entry, before / "adapters" / entry.name)


def _patient(status: int, _: int, __: int) -> None:
    """sqlite3's `backup` tries for ever; the wait that each connection has is enough."""
    if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise sqlite3.OperationalError("database is locked")


def _hashes(folder: Path) -> dict[str, str]:
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            with file.open("rb") as opened:
                found[str(file.relative_to(folder))] = hashlib.file_digest(opened, "sha256").hexdigest()
    return found
