"""Off the disk: files that hold what is forgotten, and what SQLite leaves of it. It must never know what was said.

Deleting a row leaves its bytes in the file's free space, in the write-ahead log and in what was written over earlier
(drafts, pieces of replies). So the database is written anew (VACUUM), and the log emptied into it.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from ..paths import Paths
from ..store import Store
from .texts import Texts

PATIENCE_S = 10.0
"""How long other programs that are reading are waited for."""
LARGEST_SCANNED = 256 << 20
"""Bytes; larger files are models, and never hold what was said."""


def compact(store: Store) -> bool:
    """Write the database anew and empty its log. False: another program kept reading it, so that the old pages are
    still there; to be tried again."""
    end = time.monotonic() + PATIENCE_S
    written = False
    while True:
        with store.database.read() as db:
            try:
                if not written:
                    db.conn.execute("PRAGMA secure_delete = ON")
                    db.conn.execute("VACUUM")
                    written = True
                busy, *_ = db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    return True
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) and "busy" not in str(error):
                    raise
            finally:
                db.conn.execute("PRAGMA secure_delete = OFF")
        if time.monotonic() > end:
            return False
        time.sleep(0.1)


def backups_since(paths: Paths, oldest: str) -> list[Path]:
    """What in the backups folder was made after the oldest of what goes was said, and so may hold it."""
    found = []
    for entry in sorted(paths.backups.glob("*")) if oldest else []:
        try:
            made = datetime.fromtimestamp(entry.stat().st_mtime, UTC).isoformat(timespec="microseconds")
        except OSError:
            continue
        if made >= oldest or entry.suffix == ".tmp":
            found.append(entry)
    return found


def logs_with(paths: Paths, texts: Texts) -> list[Path]:
    """Logs and requests of learning runs in which one of these texts stands."""
    return [file for file in sorted(paths.runs.glob("*")) if file.is_file() and holds(file, texts)]


def holds(file: Path, texts: Texts) -> bool:
    """Whether one of these texts stands in a file."""
    try:
        if not texts.parts or file.stat().st_size > LARGEST_SCANNED:
            return False
        data = file.read_bytes().lower()
    except OSError:
        return False
    return any(form in data for form in texts.as_bytes())


def remove(entries: Iterable[Path]) -> list[Path]:
    """Delete files and folders. Returns those that could not be deleted."""
    left = []
    for entry in entries:
        try:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)
        except OSError:
            left.append(entry)
    return left


def adapter_files(paths: Paths, gguf_path: str, peft_dir: str) -> list[Path]:
    """All that belongs to an adapter: its folder, where it has one of its own."""
    found = []
    for named in (gguf_path, peft_dir):
        path = Path(named)
        if not named:
            continue
        folder = path.parent
        own = paths.adapters in folder.parents
        found.append(folder if own else path)
    return sorted(set(found))


def files_with(paths: Paths, text: str) -> list[Path]:
    """Files of the home folder in which a text stands; models are not looked at."""
    texts, found = Texts.of((), text), []
    for root in {paths.data, paths.config}:
        for file in sorted(root.rglob("*")):
            if file.is_file() and paths.models not in file.parents and holds(file, texts):
                found.append(file)
    return found
