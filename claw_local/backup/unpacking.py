"""Opening a backup's file and unpacking it: nothing in it gets out of its folder, by name or by size.

It must never touch what is in use.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import BackupError
from ..language import _
from ..sizes import size
from .manifest import LARGEST_MANIFEST, MANIFEST, Manifest, Wrong, is_allowed, read_manifest

Report = Callable[[str, float], None]
PIECE = 1 << 20
MOST_ENTRIES = 100_000


@contextmanager
def opened(file: Path) -> Iterator[tuple[zipfile.ZipFile, Manifest]]:
    """The archive, after all that can be said of it without unpacking it was checked."""
    if file.is_dir():
        raise BackupError(_("{file} is a folder. Name a file that `claw-local backup` wrote.", file=file))
    if not file.is_file():
        raise BackupError(_("There is no backup {file}. Name a file that `claw-local backup` wrote.", file=file))
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive, _checked(archive)
    except Wrong as wrong:
        raise refused(file, wrong) from wrong
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, ValueError, zlib.error) as error:
        raise refused(file, Wrong(_("is not a backup of claw-local, or is cut short"))) from error


def _checked(archive: zipfile.ZipFile) -> Manifest:
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if MANIFEST not in names:
        raise Wrong(_("is not a backup of claw-local"))
    if len(set(names)) != len(names) or len(names) > MOST_ENTRIES:
        raise Wrong(_("has two files of the same name, or far too many"))
    for info in infos:
        if info.filename != MANIFEST and not is_allowed(info.filename):
            raise Wrong(_("holds {filename!r}, which has no place in a backup", filename=info.filename[:80]))
        mode = info.external_attr >> 16
        if info.is_dir() or (stat.S_IFMT(mode) not in (0, stat.S_IFREG)) or info.flag_bits & 1:
            raise Wrong(_("holds {filename!r}, which is no plain file", filename=info.filename[:80]))
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Wrong(_("has packed {filename!r} in a way that is not known", filename=info.filename[:80]))
    with archive.open(MANIFEST) as source:
        data = source.read(LARGEST_MANIFEST + 1)
    if len(data) > LARGEST_MANIFEST:
        raise Wrong(_("says far too much about itself"))
    manifest = read_manifest(data)
    if set(manifest.files) != set(names) - {MANIFEST}:
        raise Wrong(_("does not hold what it says it does"))
    for info in infos:
        if info.filename != MANIFEST and info.file_size != manifest.files[info.filename].size:
            raise Wrong(_("is damaged: {filename} is not as long as it says", filename=info.filename))
    return manifest


def unpack(file: Path, archive: zipfile.ZipFile, manifest: Manifest, staging: Path, report: Report) -> None:
    total = sum(entry.size for entry in manifest.files.values())
    free = shutil.disk_usage(staging).free
    if total * 2 > free:
        raise BackupError(
            _(
                "Restoring takes up to {needed}, and {free} are free. Free some space.",
                needed=size(2 * total),
                free=size(free),
            )
        )
    done = 0
    for name, entry in manifest.files.items():
        report(_("checking {name}", name=name), 0.7 * done / max(1, total))
        target = staging.joinpath(*name.split("/"))
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        digest, left = hashlib.sha256(), entry.size
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as out, archive.open(name) as source:
                while piece := source.read(min(PIECE, left + 1)):
                    left -= len(piece)
                    if left < 0:
                        raise Wrong(_("is damaged: {name} is longer than it says", name=name))
                    digest.update(piece)
                    out.write(piece)
        except (zipfile.BadZipFile, EOFError, ValueError, zlib.error) as error:
            wrong = error if isinstance(error, Wrong) else Wrong(_("is damaged: {name} cannot be unpacked", name=name))
            raise refused(file, wrong) from error
        if left or digest.hexdigest() != entry.sha256:
            raise refused(file, Wrong(_("is damaged or was changed: {name} is not what was backed up", name=name)))
        done += entry.size


def refused(file: Path, wrong: Wrong) -> BackupError:
    return BackupError(_("The file {file} {wrong}. Nothing was restored.", file=file, wrong=wrong))
