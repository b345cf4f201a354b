"""Writing a file whole or not at all. It must never know what is in it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from .leftovers import aside

_MOST_LINKS = 40
"""As many as Linux follows."""


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file aside, fsync it and rename it over `path`: whole or not at all."""
    write_pieces(path, [data], mode)


def write_pieces(path: Path, pieces: Iterable[bytes], mode: int = 0o600) -> None:
    """The same for data that is made while it is written.

    A link is followed, and the file it leads to is replaced. What is no regular file (a device, a FIFO, /dev/stdout)
    cannot be replaced without harm: it is written straight into.

    Raises:
        OSError: it cannot be written, or is a folder.
    """
    if (inherited := _descriptor(path)) is not None:
        _pour(os.dup(inherited), pieces)
        return
    if (there := _mode(path)) is not None and not stat.S_ISREG(there):
        _pour(os.open(path, os.O_WRONLY), pieces)
        return
    target = Path(os.path.realpath(path))
    with aside(target) as made:
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(made, target)


def would_replace(path: Path) -> bool:
    """Whether writing there would put something else in the place of a file that exists."""
    there = _mode(path)
    return there is not None and stat.S_ISREG(there) and _descriptor(path) is None


def is_handed_over(path: Path) -> bool:
    """Whether it names an open file that this process was given, as /dev/stdout does. Raises as `write_pieces`."""
    return _descriptor(path) is not None


def _pour(descriptor: int, pieces: Iterable[bytes]) -> None:
    with os.fdopen(descriptor, "wb") as file:
        for piece in pieces:
            file.write(piece)


def _mode(path: Path) -> int | None:
    """What is at the end of the links; None: nothing yet."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _descriptor(path: Path) -> int | None:
    """The open file of this process that /dev/stdout, /dev/fd/63 or a link to such names; None: a path like others.

    Raises OSError: it names none that was handed to this process, but one of its own.
    """
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd") and path.name.isdecimal():
            number = int(path.name)
            if not os.get_inheritable(number):
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            return number
        if not path.is_symlink():
            break
        path = Path(folder, os.readlink(path))
    return None
