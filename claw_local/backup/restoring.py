"""Restoring a backup: everything in it is unpacked aside and checked before anything here is touched. It must never put
a file in its place: `switching` does.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import BackupError, StoreError
from ..language import _
from ..paths import Paths
from ..store import encrypting, opening, unlocking
from ..store.database import Database
from ..store.processes import process_identity, process_lives
from ..store.unlocking import Key
from . import tables
from .manifest import DATABASE, Manifest, Wrong
from .switching import Switch, check_idle
from .unpacking import opened, refused, unpack

Report = Callable[[str, float], None]
STAGING = ".restore-"


@dataclass(frozen=True)
class Restored:
    """A backup that is in place. `before`: the folder with what was there before it; None if nothing was.
    `made_plain`: it was encrypted, and its chats are plain here, as those of this home were."""

    manifest: Manifest
    before: Path | None
    made_plain: bool = False


def look(file: Path) -> Manifest:
    """What is in a backup; its hashes are not checked yet.

    Raises:
        BackupError: it is not there, cut short, or none.
    """
    try:
        with opened(file) as (_archive, manifest):
            return manifest
    except OSError as error:
        raise BackupError(
            _("{file} cannot be read ({error}). Make it readable.", file=file, error=error.strerror or error)
        ) from error


def restore(paths: Paths, file: Path, *, report: Report = lambda words, fraction: None) -> Restored:
    """Put a backup in the place of what is here: all of it, or nothing.

    Raises:
        BackupError: the file is cut short, forged or from a newer version, a learning run is going on, or it could not
            be written. All is as it was.
    """
    paths.make()
    check_idle(paths)
    sweep(paths)
    mark = process_identity().replace(":", "-")
    staging = Path(tempfile.mkdtemp(prefix=f"{STAGING}{mark}-", dir=paths.data))
    try:
        with opened(file) as (archive, manifest):
            unpack(file, archive, manifest, staging, report)
        report(_("checking the database"), 0.7)
        _unlock(file, staging)
        try:
            tables.check(staging / DATABASE)
        except Wrong as wrong:
            raise refused(file, wrong) from wrong
        _bring_up_to_date(file, staging)
        report(_("putting it in place"), 0.9)
        was_encrypted = opening.is_encrypted(staging / DATABASE)
        key = _as_here(paths, staging)
        before = Switch(paths, staging, manifest, key).run()
    except OSError as error:
        raise BackupError(
            _(
                "{file} cannot be restored ({error}). Free some space, or make the folder writable; all is as it was.",
                file=file,
                error=error.strerror or error,
            )
        ) from error
    finally:
        opening.let_go(staging / DATABASE)
        shutil.rmtree(staging, ignore_errors=True)
    report(_("done"), 1.0)
    return Restored(manifest, before, was_encrypted and key is None)


def sweep(paths: Paths) -> None:
    """Remove what restores whose process was killed left behind: a database of chats is in it."""
    for folder in paths.data.glob(f"{STAGING}*"):
        pid, _, rest = folder.name.removeprefix(STAGING).partition("-")
        if not process_lives(f"{pid}:{rest.partition('-')[0]}"):
            shutil.rmtree(folder, ignore_errors=True)


def _bring_up_to_date(file: Path, staging: Path) -> None:
    """Programs that are open here read the newest schema only, so it gets there before it is put in place."""
    try:
        Database(Paths(data=staging, config=staging)).close()
    except StoreError as error:
        raise refused(file, Wrong(_("holds a database that cannot be brought up to date"))) from error


def _unlock(file: Path, staging: Path) -> None:
    """Raises StoreError: the backup's database is encrypted, and there is no key, or a wrong one."""
    try:
        unlocking.read(staging / DATABASE)
    except StoreError as error:
        raise refused(file, Wrong(_("is damaged: how its database is encrypted cannot be read"))) from error
    opening.key_of(staging / DATABASE, named=file)


def _as_here(paths: Paths, staging: Path) -> Key | None:
    """Encrypt what was unpacked as what is here is, or write it plain as that is. Where nothing is here yet, or what is
    here is not plain and has no note (which is damaged, or its note is lost), it stays as it is. Returns its key then.
    """
    new = staging / DATABASE
    key = opening.key_of(new)
    if not paths.encryption.exists() and opening.begins(paths.database) != opening.MAGIC:
        return key
    here = opening.key_of(paths.database)
    if key != here:
        encrypting.rewrite(new, key, here)
    return here
