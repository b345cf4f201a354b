"""What a killed process leaves half made, and its end. It must never know what was being made.

Whatever is written aside has a hidden name that says whose it is: `.NAME.PID.N.tmp`, a file or a folder; older
versions wrote `.NAME.PID.tmp`. Beside files of ours such names are found again by looking; where it lies elsewhere (an
export on a stick), a note in our own folder says so before it is begun. The next start deletes both, unless the process
lives.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .paths import Paths

NOTES = "unfinished"
"""The folder of notes, below the data folder."""

_ASIDE = re.compile(r"\..*?\.(\d{1,10})(?:\.\d+)?\.tmp", re.DOTALL)
_STAGING = re.compile(r"\.(?:restore|import)-(\d{1,10})-.*", re.DOTALL)
_LONGEST_NAME = 40
_CLOCK_S = 2.0
"""Clocks of files and of processes differ a little."""

_numbers = itertools.count(1)
_home: list[Path] = []
"""The data folder of this process; none until its folders are made."""


def keep_notes_in(data: Path) -> None:
    """From now on, what is made outside this folder is noted in it."""
    _home[:] = [data]


@contextmanager
def aside(target: Path) -> Iterator[Path]:
    """A name beside `target` for what is being made there. Whatever still has it at the end is deleted; if the process
    is killed before, the next start deletes it."""
    made = target.with_name(f".{target.name[:_LONGEST_NAME]}.{os.getpid()}.{next(_numbers)}.tmp")
    note = _note(made)
    try:
        yield made
    finally:
        remove(made)
        if note is not None:
            with suppress(OSError):
                note.unlink(missing_ok=True)


def found(paths: Paths) -> list[Path]:
    """What killed processes left: in the folders of this home, and wherever a note leads."""
    here = [entry for folder in _folders(paths) for entry in _scan(folder) if is_dead(entry, _ASIDE, _STAGING)]
    return [*here, *(made for _, made in _noted(paths) if made is not None)]


def sweep(paths: Paths) -> list[Path]:
    """Delete it. Returns what went."""
    gone = [entry for entry in found(paths) if remove(entry)]
    for note, made in _noted(paths):
        if made is None:  # Where it could not be deleted, its disk may be back at another time.
            remove(note)
    return gone


def _noted(paths: Paths) -> Iterator[tuple[Path, Path | None]]:
    """Each note of a process that has ended, and what it names; None: that is not there (any more). One that was cut
    short or forged names nothing: what a note names must be called as the note is."""
    for note in _listed(paths.data / NOTES):
        if not is_dead(note, _ASIDE):
            continue
        try:
            made = Path(note.read_text("utf-8"))
        except (OSError, ValueError):
            made = Path()
        there = made.name == note.name and made.is_absolute() and os.path.lexists(made)
        yield note, made if there else None


def remove(entry: Path) -> bool:
    """Delete a file, a link or a folder; whether nothing is there now."""
    try:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _note(made: Path) -> Path | None:
    if not _home or made.is_relative_to(_home[0]):
        return None
    note = _home[0] / NOTES / made.name
    try:
        note.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(os.path.abspath(made))
    except (OSError, ValueError):
        remove(note)
        return None  # It is for tidiness only: without it, the work goes on.
    return note


def _folders(paths: Paths) -> Iterator[Path]:
    yield from dict.fromkeys((paths.data, paths.config, paths.themes, paths.backups, paths.models, paths.caches))
    for root in (paths.adapters, paths.runs):
        yield root
        for entry in _listed(root):
            if entry.is_dir() and not entry.is_symlink():
                yield entry
                yield from (below for below in _listed(entry) if below.is_dir() and not below.is_symlink())


def _scan(folder: Path) -> Iterator[Path]:
    for entry in _listed(folder):
        if _ASIDE.fullmatch(entry.name) or _STAGING.fullmatch(entry.name):
            yield entry


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def is_dead(entry: Path, *names: re.Pattern[str]) -> bool:
    """Whether the process whose number stands in a name has ended. The number may belong to another one by now, which
    began after the entry was last changed.

    Args:
        names: patterns with the number as their first group; a name that is none of these is nobody's to delete.
    """
    match = next((found for name in names if (found := name.fullmatch(entry.name))), None)
    if match is None:
        return False
    pid = int(match[1])
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return True
        return bool(process.create_time() > entry.lstat().st_mtime + _CLOCK_S)
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, OSError, OverflowError):
        return False
