"""KV caches of the last chats on the disk, so that a chat goes on after a restart without being read anew.

A file a chat: a line of JSON, the tokens, the cache. What does not fit the model, the build of llama.cpp or its own
checksum is no cache. It must never know what a chat is, or who may read it.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from ..leftovers import aside
from ._remembered import Prefix
from .base import AdapterSlot

LEAST_TOKENS = 256
"""Fewer are computed nearly as soon as they are read."""
_NAME = re.compile(r"([1-9]\d{0,18})\.kv")
_LONGEST_HEADER = 1_000_000
_FORM = 1


def build() -> str:
    """What wrote a cache: another build of llama.cpp may lay it out in another way."""
    import llama_cpp

    return f"{_FORM} {llama_cpp.__version__}"


class Shelf:
    """A folder of them.

    Args:
        folder: made when the first is put.
        most_bytes: of all files together; those put longest ago go first.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self.folder = folder
        self._most = most_bytes

    def put(self, number: int, model_sha256: str, prefix: Prefix) -> bool:
        """Keep one under a number, in place of what was there. False: it is too short or too long, or the disk refused
        it, and nothing is there now."""
        self.drop(number)
        tokens = np.asarray(prefix.tokens, np.int32)
        if len(tokens) < LEAST_TOKENS or tokens.nbytes + prefix.state.nbytes > self._most:
            return False
        header = {
            "build": build(),
            "model": model_sha256,
            "adapters": [[str(slot.path), slot.scale] for slot in prefix.adapters],
            "tokens": len(tokens),
            "bytes": prefix.state.nbytes,
            "check": _check(tokens, prefix.state),
        }
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with aside(self._file(number)) as made:
                descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(json.dumps(header).encode() + b"\n")
                    file.write(tokens.data)
                    file.write(prefix.state.data)
                # Not synced: after a power cut the checksum tells, and the chat is read anew.
                os.replace(made, self._file(number))
        except OSError:
            return False
        self._make_room()
        return True

    def take(self, number: int, model_sha256: str) -> Prefix | None:
        """What is kept under a number for this model and this build; None, and no file, where it is of no use."""
        try:
            with self._opened(number) as file:
                header = _header(file.readline(_LONGEST_HEADER))
                if header["build"] != build() or header["model"] != model_sha256:
                    raise ValueError("it was written by something else")
                size = os.fstat(file.fileno()).st_size - file.tell()
                if size != 4 * header["tokens"] + header["bytes"]:
                    raise ValueError("it is not whole")
                tokens = np.fromfile(file, np.int32, header["tokens"])
                state = np.fromfile(file, np.uint8, header["bytes"])
            if _check(tokens, state) != header["check"]:
                raise ValueError("it is damaged")
            slots = tuple(AdapterSlot(Path(path), float(scale)) for path, scale in header["adapters"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError, RecursionError):
            self.drop(number)
            return None
        return Prefix(tuple(tokens.tolist()), slots, state)

    def _opened(self, number: int) -> BufferedReader:
        """Raises ValueError: that is no file, or a larger one than any that is put here."""
        # Not blocking: a pipe without a writer would be waited for.
        how = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._file(number), how)
        file = os.fdopen(descriptor, "rb")
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > self._most + _LONGEST_HEADER:
            file.close()
            raise ValueError("it is none of ours")
        return file

    def drop(self, number: int) -> None:
        with suppress(OSError):
            self._file(number).unlink(missing_ok=True)

    def keep_only(self, numbers: Collection[int]) -> None:
        """Drop what is kept under any other number."""
        for number, _ in self._files():
            if number not in numbers:
                self.drop(number)

    def numbers(self) -> list[int]:
        """Those under which something is kept."""
        return sorted(number for number, _ in self._files())

    def _file(self, number: int) -> Path:
        return self.folder / f"{number}.kv"

    def _files(self) -> Iterator[tuple[int, os.stat_result]]:
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                found = _NAME.fullmatch(entry.name)
                if found:
                    with suppress(OSError):
                        yield int(found.group(1)), entry.stat(follow_symlinks=False)

    def _make_room(self) -> None:
        left = self._most
        for number, entry in sorted(self._files(), key=lambda one: -one[1].st_mtime_ns):
            left -= entry.st_size
            if left < 0:
                self.drop(number)


def _header(line: bytes) -> dict[str, Any]:
    header = json.loads(line)
    if not isinstance(header, dict) or not all(
        isinstance(header.get(name), int) and header[name] > 0 for name in ("tokens", "bytes")
    ):
        raise ValueError("it has no header")
    return header


def _check(tokens: np.ndarray[Any, np.dtype[np.int32]], state: np.ndarray[Any, np.dtype[np.uint8]]) -> int:
    return zlib.crc32(state.data, zlib.crc32(tokens.data))
