"""Files in UTF-16, as some programs on Windows write them, read as the UTF-8 that the reader of JSON takes.

It must never know what is in them.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable
from typing import IO, cast

BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PIECE = 1 << 16


def opened_as_utf8(begin: Callable[[], IO[bytes]]) -> IO[bytes]:
    """What `begin` opens; from UTF-16, where it starts with the mark of that, in UTF-8 and without the mark. What is no
    text in it becomes U+FFFD, as a reader of JSON refuses what is none of its own anyway."""
    with begin() as file:
        marked = file.read(2) in BOMS
    return cast("IO[bytes]", io.BufferedReader(_Recoded(begin()))) if marked else begin()


def end_in_utf8(data: bytes, begin: bytes) -> bytes:
    """The last bytes of a file, an even number of them, in UTF-8. `begin`: its first two."""
    if begin not in BOMS:
        return data
    return data.decode("utf-16-le" if begin == codecs.BOM_UTF16_LE else "utf-16-be", "replace").encode()


class _Recoded(io.RawIOBase):
    """A stream of UTF-8, made piece by piece from one of UTF-16."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        self._held = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._held:
            data = self._file.read(_PIECE)
            self._held = self._decoder.decode(data, final=not data).encode()
            if not data:
                break
        taken = self._held[: len(buffer)]
        self._held = self._held[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)

    def close(self) -> None:
        self._file.close()
        super().close()
