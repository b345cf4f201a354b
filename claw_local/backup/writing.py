"""Writing a backup while everything runs. It must never change what it copies."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .. import __version__
from ..errors import BackupError, UsageError
from ..language import _
from ..leftovers import aside
from ..paths import Paths
from ..store import Store, failing, opening
from ..store.database import now
from ..targets import check_target
from . import tables
from .manifest import DATABASE, ENCRYPTION, MANIFEST, SETTINGS, Entry, Manifest, is_allowed

Report = Callable[[str, float], None]
PIECE = 1 << 20
TRIES = 3
"""How often the whole is copied again because an adapter was removed meanwhile."""


@dataclass(frozen=True)
class Backup:
    """A backup that was written. `left_out`: adapters' files that are not there, or lie outside of the home."""

    path: Path
    size: int
    manifest: Manifest
    left_out: tuple[str, ...] = ()

    @property
    def encrypted(self) -> bool:
        """Whether its database is: with the key of the home it is of."""
        return ENCRYPTION in self.manifest.files


class _Moved(Exception):
    """A file was removed while it was to be copied."""


def write_backup(
    store: Store,
    paths: Paths,
    target: Path,
    *,
    force: bool = False,
    report: Report = lambda words, fraction: None,
) -> Backup:
    """Write chats, hints, signals, adapters, settings and themes to one file. Models are not in it: they can be fetched
    again. The file is for its owner only, and appears whole or not at all.

    Raises:
        UsageError: the file exists. BackupError: it cannot be written. StoreError: the database cannot be read.
    """
    if target.is_dir():
        raise UsageError(
            _(
                "{target} is a folder. Name the file to write, such as {file}.",
                target=target,
                file=target / "claw-local.backup",
            )
        )
    check_target(target, paths)
    if target.exists() and not force:
        raise UsageError(_("{target} exists. Choose another file, or add --force to write over it.", target=target))
    whole = Path(os.path.realpath(target))  # A link stays, and the file it leads to is replaced.
    try:
        with aside(whole) as folder:
            folder.mkdir(mode=0o700)
            for attempt in range(TRIES):
                try:
                    manifest, left_out = _written(store, paths, folder, report, patient=attempt < TRIES - 1)
                    break
                except _Moved:
                    continue
            else:
                raise BackupError(_("Files kept being removed while they were copied. Write the backup again later."))
            made = folder / "backup"
            size = made.stat().st_size
            os.replace(made, whole)
    except OSError as error:
        raise BackupError(_refused(target, whole.parent, error)) from error
    report(_("done"), 1.0)
    return Backup(target, size, manifest, tuple(left_out))


def _refused(target: Path, folder: Path, error: OSError) -> str:
    """Why a backup could not be written, and what helps."""
    why = error.strerror or error
    if not folder.is_dir():
        return _(
            "The backup cannot be written to {target}: there is no folder {folder}. Make it, or name another file.",
            target=target,
            folder=folder,
        )
    if failing.is_the_disk(error):
        return _(
            "The backup cannot be written to {target} ({error}). Free some space, or choose another file.",
            target=target,
            error=why,
        )
    return _(
        "The backup cannot be written to {target} ({error}). Make its folder writable, or choose another file.",
        target=target,
        error=why,
    )


def _written(store: Store, paths: Paths, folder: Path, report: Report, *, patient: bool) -> tuple[Manifest, list[str]]:
    report(_("copying the database"), 0.0)
    copy = folder / "copy.db"
    copy.unlink(missing_ok=True)
    os.close(os.open(copy, os.O_RDWR | os.O_CREAT, 0o600))
    tables.snapshot(store, copy)
    connection = opening.connect(copy, like=paths.database)
    try:
        left_out: list[str] = []
        sources = dict(_adapters(connection, paths, left_out, patient=patient))
        counts, migrations = tables.counts(connection), tables.migrations(connection)
    finally:
        connection.close()
    sources[DATABASE] = copy
    if opening.is_encrypted(paths.database):
        sources[ENCRYPTION] = paths.encryption
    if paths.settings.is_file():
        sources[SETTINGS] = paths.settings
    for theme in sorted(paths.themes.glob("*.toml")):
        if is_allowed(f"themes/{theme.name}") and theme.is_file():
            sources[f"themes/{theme.name}"] = theme
    total = max(1, sum(path.stat().st_size for path in sources.values() if path.is_file()))
    _check_room(folder, total)
    entries: dict[str, Entry] = {}
    descriptor = os.open(folder / "backup", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w+b") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
            done = 0
            for name, path in sorted(sources.items()):
                report(_("writing {name}", name=name), done / total)
                entries[name] = _add(archive, name, path)
                done += entries[name].size
            manifest = Manifest(now(), __version__, migrations, counts, entries)
            archive.writestr(_info(MANIFEST), manifest.as_bytes())
        file.flush()
        os.fsync(file.fileno())
    return manifest, left_out


def _adapters(
    connection: sqlite3.Connection, paths: Paths, left_out: list[str], *, patient: bool
) -> Iterator[tuple[str, Path]]:
    """The files of all adapters by their names in the backup, which the copied database then has, too."""
    folders: set[Path] = set()

    def portable(path: str) -> str:
        try:
            inside = Path(path).relative_to(paths.adapters)
        except ValueError:
            left_out.append(path)
            return ""
        name = "/".join(("adapters", *inside.parts))
        if not Path(path).exists() or len(inside.parts) < 2 or not is_allowed(name):
            if patient and len(inside.parts) > 1:
                raise _Moved
            left_out.append(path)
            return ""
        folders.add(paths.adapters / inside.parts[0])
        return name

    tables.change_paths(connection, portable)
    for folder in sorted(folders):
        for file in sorted(folder.rglob("*")):
            name = "/".join(("adapters", *file.relative_to(paths.adapters).parts))
            if file.is_file() and not file.is_symlink() and not file.name.endswith(".tmp") and is_allowed(name):
                yield name, file


def _add(archive: zipfile.ZipFile, name: str, path: Path) -> Entry:
    digest, size = hashlib.sha256(), 0
    try:
        source = path.open("rb")
    except FileNotFoundError as error:
        raise _Moved from error
    with source, archive.open(_info(name), "w", force_zip64=True) as out:
        while piece := source.read(PIECE):
            digest.update(piece)
            size += len(piece)
            out.write(piece)
    return Entry(size, digest.hexdigest())


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o100600 << 16
    return info


def _check_room(folder: Path, total: int) -> None:
    free = shutil.disk_usage(folder).free
    if total > free:
        raise BackupError(
            _(
                "The backup may take {total:,.0f} MB, and {free:,.0f} MB are free there. Free "
                "some space, or choose another disk.",
                total=total / 1e6,
                free=free / 1e6,
            )
        )
