"""Off the disk: files that hold what is forgotten, and what SQLite leaves of it. It must never know what was said.

Deleting a row leaves its bytes in the file's free space, in the write-ahead log and in what was written over earlier
(drafts, pieces of replies). So the database is written anew (VACUUM), and the log emptied into it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path

from .. import leftovers
from ..engine.gguf_file import DamagedGguf, read_header
from ..paths import Paths
from ..store import Store
from ..store.processes import process_lives
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


def orphans(paths: Paths, used: Collection[str], texts: Texts) -> list[Path]:
    """Adapters' folders that no row names, left by a program that was killed: those of learning runs, and others in
    which one of these texts stands.

    Args:
        used: names of the folders that rows name. A home that was moved, or is reached through a link, has other paths.
    """
    found = []
    for kind in ("run-*", "mix-*", "import-*"):
        for folder in sorted(paths.adapters.glob(kind)):
            if folder.name in used or not folder.is_dir() or folder.is_symlink():
                continue
            if kind == "run-*" or any(holds(file, texts) for file in folder.rglob("*") if file.is_file()):
                found.append(folder)
    return found


def left_behind(paths: Paths) -> list[Path]:
    """What restores that were killed unpacked: a database of chats is in it."""
    found = []
    for folder in sorted(paths.data.glob(".restore-*")):
        pid, _, rest = folder.name.removeprefix(".restore-").partition("-")
        if not process_lives(f"{pid}:{rest.partition('-')[0]}"):
            found.append(folder)
    return found


def logs_with(paths: Paths, texts: Texts) -> list[Path]:
    """Logs and requests of learning runs in which one of these texts stands."""
    return [file for file in sorted(paths.runs.glob("*")) if file.is_file() and holds(file, texts)]


def holds(file: Path, texts: Texts) -> bool:
    """Whether one of these texts stands in a file."""
    try:
        if not texts.parts or file.stat().st_size > LARGEST_SCANNED:
            return False
        data = _without_matrices(file, file.read_bytes())
    except OSError:
        return False
    lowered = data.lower()
    if any(form in lowered for form in texts.as_bytes()):
        return True
    return texts.in_letters(data)


def _without_matrices(file: Path, data: bytes) -> bytes:
    """A file's bytes, of an adapter's only the header: among twenty million bytes of numbers, three letters stand by
    chance."""
    if file.suffix == ".safetensors":
        return data[: 8 + int.from_bytes(data[:8], "little")]
    if file.suffix == ".gguf":
        try:
            return data[: read_header(file).data_start]
        except DamagedGguf:
            return data
    return data


def remove(entries: Iterable[Path]) -> list[Path]:
    """Delete files and folders. Returns those that could not be deleted."""
    return [entry for entry in entries if not leftovers.remove(entry)]


def adapter_files(paths: Paths, gguf_path: str, peft_dir: str) -> list[Path]:
    """All that belongs to an adapter: its folder in this home. In one that was moved or copied, the paths still lead to
    where it was, perhaps to another home: what is there is left alone."""
    folders = {Path(named).parent for named in (gguf_path, peft_dir) if named}
    own = {folder if paths.adapters in folder.parents else paths.adapters / folder.name for folder in folders}
    return sorted(folder for folder in own if folder.is_dir())


def files_with(paths: Paths, text: str) -> list[Path]:
    """Files of the home folder in which a text stands; models are not looked at."""
    texts, found = Texts.of((), text), []
    for root in {paths.data, paths.config}:
        for file in sorted(root.rglob("*")):
            if file.is_file() and paths.models not in file.parents and holds(file, texts):
                found.append(file)
    return found
