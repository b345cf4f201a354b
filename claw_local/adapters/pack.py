"""The claw pack: an adapter as one file, a plain zip of known names. It must never write outside the folder given.

Only what is needed of the zip format is taken: files stored as they are, one after the other, nothing before, between
or after them. So there are no bombs, links, paths or second meanings, and what the file says can be checked in full.
Errors complete the sentence "FILE was not imported: ...".
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, BinaryIO

from ..errors import AdapterError
from ..language import _
from .manifest import LONGEST, Manifest

MANIFEST = "manifest.json"
CONFIG, WEIGHTS, GGUF = "peft/adapter_config.json", "peft/adapter_model.safetensors", "adapter.gguf"
REPORT, REPORT_TEXT = "gate.json", "gate.md"
NEEDED = (CONFIG, WEIGHTS, GGUF)
NAMES = (MANIFEST, CONFIG, WEIGHTS, GGUF, REPORT, REPORT_TEXT)
"""All files that a pack may hold, in their order."""
MOST_BYTES = 2 << 30
SMALL = {MANIFEST: LONGEST, CONFIG: LONGEST, REPORT: LONGEST, REPORT_TEXT: LONGEST}
"""Most bytes of the files that are text."""

MOST_ENTRIES = 64
"""More are not even looked at."""

_END = struct.Struct("<4s4H2LH")
_LOCAL = struct.Struct("<4s5H3L2H")
_BLOCK = 1 << 20


def write_pack(files: Mapping[str, bytes | Path], out: BinaryIO) -> None:
    """Write a pack: the same files give the same bytes.

    Args:
        files: by name; the manifest among them.
    """
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
        for name in NAMES:
            if name not in files:
                continue
            content = files[name]
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o600) << 16
            entry.file_size = len(content) if isinstance(content, bytes) else content.stat().st_size
            with archive.open(entry, "w") as written:
                if isinstance(content, bytes):
                    written.write(content)
                else:
                    with content.open("rb") as file:
                        shutil.copyfileobj(file, written, _BLOCK)


def unpack(file: BinaryIO, folder: Path) -> Manifest:
    """Check a pack, and write what it holds into an empty folder. Its matrices are not looked at.

    Raises:
        AdapterError: it is no pack, or anything about it is not as it should be. The folder may hold part of it then.
        OSError: it cannot be read, or the folder not be written.
    """
    size = file.seek(0, os.SEEK_END)
    if size > MOST_BYTES:
        raise AdapterError(_("it has more than {most} GiB, far more than an adapter needs", most=MOST_BYTES >> 30))
    start, count = _check_end(file, size)
    try:
        with zipfile.ZipFile(file) as archive:
            listed = archive.infolist()
            if len(listed) != count:
                raise AdapterError(_("it tells another number of files than it holds"))
            entries = _checked_entries(file, listed, start)
            manifest = Manifest.from_json(archive.read(MANIFEST))
            _check_files(manifest, entries)
            if sum(entry.file_size for entry in entries.values()) > shutil.disk_usage(folder).free:
                raise AdapterError(_("there is not enough free disk space for it; free some first"))
            for name, told in manifest.files.items():
                target = folder / name
                target.parent.mkdir(mode=0o700, exist_ok=True)
                with archive.open(name) as inside:
                    if _copy(inside, target) != told.sha256:
                        raise AdapterError(_("{name} is not the file whose hash the manifest gives", name=name))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, struct.error) as error:
        raise AdapterError(_("it is damaged, or no plain zip file; get it again from where it came from")) from error
    return manifest


def _check_end(file: BinaryIO, size: int) -> tuple[int, int]:
    """Where the zip's directory begins, and how many entries it has. It is small and reaches to the file's end."""
    if size < _END.size:
        raise AdapterError(_("it is cut short or no pack; get it again from where it came from"))
    file.seek(size - _END.size)
    mark, disk, first_disk, here, entries, length, start, comment = _END.unpack(file.read(_END.size))
    if mark != b"PK\x05\x06" or comment:
        raise AdapterError(_("it is cut short, or no pack, or something was added to it; get it again"))
    if disk or first_disk or here != entries or not 0 < entries <= MOST_ENTRIES or length > _BLOCK:
        raise AdapterError(_("it does not hold the files of a pack"))
    if start + length + _END.size != size:
        raise AdapterError(_("something was added to it, or it is cut short; get it again from where it came from"))
    return int(start), int(entries)


def _checked_entries(file: BinaryIO, listed: list[zipfile.ZipInfo], end: int) -> dict[str, zipfile.ZipInfo]:
    """The entries by name, each plain, one after the other without a gap up to `end`."""
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in listed:
        name = entry.orig_filename
        if name not in NAMES or entry.filename != name:
            raise AdapterError(_("it holds {name!r}, which no pack does", name=name[:60]))
        if name in entries:
            raise AdapterError(_("it holds {name} twice", name=name))
        if entry.flag_bits or entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise AdapterError(
                _(
                    "{name} in it is packed or encrypted by the zip format, and a pack holds files as they are",
                    name=name,
                )
            )
        if entry.create_system == 3 and stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
            raise AdapterError(_("{name} in it is a link or something else that is no file", name=name))
        if entry.extra or entry.comment:
            raise AdapterError(_("{name} in it carries more than a file", name=name))
        if entry.file_size > SMALL.get(name, MOST_BYTES):
            raise AdapterError(_("{name} in it is too large", name=name))
        entries[name] = entry
    if MANIFEST not in entries:
        raise AdapterError(_("it has no manifest, so it is no pack"))
    at = 0
    for entry in sorted(entries.values(), key=lambda entry: entry.header_offset):
        file.seek(entry.header_offset)
        mark, _version, flags, _method, _time, _date, _crc, packed, plain, name_length, extra = _LOCAL.unpack(
            file.read(_LOCAL.size)
        )
        told = (mark, flags, packed, plain, extra, entry.header_offset)
        if told != (b"PK\x03\x04", 0, entry.file_size, entry.file_size, 0, at):
            raise AdapterError(
                _("what the zip says of {filename} in two places does not agree", filename=entry.filename)
            )
        at += _LOCAL.size + name_length + entry.file_size
    if at != end:
        raise AdapterError(_("it holds something that is none of its files"))
    return entries


def _check_files(manifest: Manifest, entries: Mapping[str, zipfile.ZipInfo]) -> None:
    missing = [name for name in NEEDED if name not in entries]
    if missing:
        raise AdapterError(_("it lacks {name}", name=missing[0]))
    if set(manifest.files) != set(entries) - {MANIFEST}:
        raise AdapterError(_("its manifest names other files than it holds"))
    for name, told in manifest.files.items():
        if told.size != entries[name].file_size:
            raise AdapterError(_("{name} has another size than its manifest says", name=name))


def _copy(source: IO[bytes], target: Path) -> str:
    """Write a new file; returns its SHA-256."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        while block := source.read(_BLOCK):
            digest.update(block)
            out.write(block)
    return digest.hexdigest()
