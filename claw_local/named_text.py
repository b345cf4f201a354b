"""Reading a text file that a person named. It must never wait for what is no file, or read without an end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

LARGEST_BYTES = 64_000_000
"""More is a mistake: no text that is read here as a whole comes near it."""


def shown(path: Path | str) -> str:
    """A path on one line as any terminal can show it: what cannot be printed is written like \\n or \\udcff."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(path))


def read_text(path: Path, *, most: int = LARGEST_BYTES) -> str:
    """The text of a regular file in UTF-8, its lines ending with a newline alone, without
    the mark that Notepad puts before it. A link is followed.

    Raises:
        OSError: it is not there, cannot be read, is a folder, a pipe or a device, or is larger than `most` bytes; its
            `strerror` says so. UnicodeDecodeError: it is no UTF-8 text.
    """
    return read_bytes(path, most=most).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: Path, *, most: int = LARGEST_BYTES) -> bytes:
    """The same for any data. Raises OSError as `read_text`."""
    if "\0" in str(path):
        raise OSError(None, "no file has such a name")
    # Not blocking: a pipe without a writer would be waited for, for ever.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        kind = os.fstat(handle).st_mode
        if not stat.S_ISREG(kind):
            raise OSError(None, "it is a folder" if stat.S_ISDIR(kind) else "it is a device or a pipe, not a file")
        with open(handle, "rb", closefd=False) as file:
            data = file.read(most + 1)
    finally:
        os.close(handle)
    if len(data) > most:
        raise OSError(None, f"it is larger than {most / 1e6:.0f} MB")
    return data
