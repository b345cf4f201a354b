"""Tools that only look: list, read, search. What they read is bounded, and only text."""

from __future__ import annotations

import fnmatch
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from .arguments import List, Read, Search, checked, spec_of
from .base import Call, Prepared, Result, ToolError
from .folder import Folder, Place, is_link, parts_of

LARGEST_FILE = 4 * 1024 * 1024
"""Bytes of a file that is read at all."""
MOST_ENTRIES = 300
MOST_MATCHES = 60
MOST_FILES = 5000
DEEPEST = 100
"""Folders in folders that a search goes down into: each is held open meanwhile."""
SEARCH_BYTES = 64 * 1024 * 1024
SEARCH_S = 10.0
LONGEST_LINE = 400
_PASSED_OVER = frozenset([".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"])
"""Folders that a list or a search of others does not go down into; they can be named."""


def text_of(data: bytes, shown: str) -> str:
    """A file's bytes as text.

    Raises:
        ToolError: they are none.
    """
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                break
    if b"\0" not in data:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            pass
    raise ToolError(f"{shown} is no text (or not in UTF-8), so it can be neither read nor changed here.")


def read_file(folder: Folder, parts: list[str]) -> tuple[bytes, os.stat_result]:
    """A whole file. Raises ToolError."""
    if not parts:
        raise ToolError("The workspace is a folder. Name a file in it.")
    shown = "/".join(parts)
    with folder.at(parts[:-1], of=parts[-1]) as place:
        return _whole(place, parts[-1], shown)


def _whole(place: Place, name: str, shown: str) -> tuple[bytes, os.stat_result]:
    descriptor, status = place.open(name, shown, most=LARGEST_FILE)
    with os.fdopen(descriptor, "rb") as file:
        # One more than allowed: it may grow while it is read.
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise ToolError(f"{shown} has more than {LARGEST_FILE:,} bytes; it cannot be used at once.")
    return data, status


@dataclass(frozen=True)
class Looking:
    """list, read and search in one folder. They ask nobody."""

    folder: Folder

    specs = (spec_of("list", List), spec_of("read", Read), spec_of("search", Search))

    def prepare(self, call: Call) -> Prepared:
        """What the call would do. Raises ToolError."""
        if call.name == "list":
            return self._list(call, checked(List, call))
        if call.name == "read":
            return self._read(call, checked(Read, call))
        return self._search(call, checked(Search, call))

    def _list(self, call: Call, said: List) -> Prepared:
        parts = parts_of(said.path, self.folder.root)

        def perform(_: threading.Event | None) -> Result:
            with self.folder.at(parts) as place:
                lines = list(islice(_entries(place, "", said.depth), MOST_ENTRIES + 1))
            more = f"\n[more than {MOST_ENTRIES}: list a folder below]" if len(lines) > MOST_ENTRIES else ""
            return Result("\n".join(lines[:MOST_ENTRIES]) + more or "(empty)")

        return _asks_nobody(call, f"list {'/'.join(parts) or 'the workspace'}", perform)

    def _read(self, call: Call, said: Read) -> Prepared:
        parts = parts_of(said.path, self.folder.root)
        shown = "/".join(parts)

        def perform(_: threading.Event | None) -> Result:
            lines = text_of(read_file(self.folder, parts)[0], shown).splitlines()
            if not lines:
                return Result(f"({shown} is empty)")
            end = min(len(lines), said.start - 1 + said.lines)
            if said.start > len(lines):
                raise ToolError(f"{shown} has {len(lines)} lines only.")
            text = "\n".join(lines[said.start - 1 : end])
            part = said.start > 1 or end < len(lines)
            return Result(f"[lines {said.start} to {end} of {len(lines)}]\n{text}" if part else text)

        return _asks_nobody(call, f"read {shown}", perform)

    def _search(self, call: Call, said: Search) -> Prepared:
        parts = parts_of(said.path, self.folder.root)

        def perform(stop: threading.Event | None) -> Result:
            search = _Search(said, stop)
            with self.folder.at(parts[:-1], of="".join(parts[-1:])) as above:
                status = above.status(above.spelt(parts[-1])) if parts else None
                if status is not None and not stat.S_ISDIR(status.st_mode):
                    search.file(above, parts[-1], "/".join(parts), loudly=True)
                    return Result(search.told())
            with self.folder.at(parts) as place:
                search.folder(place, "/".join(parts))
            return Result(search.told())

        return _asks_nobody(call, f"search for “{said.text[:40]}”", perform)


class _Search:
    """One search under way, with what it may still cost."""

    def __init__(self, said: Search, stop: threading.Event | None) -> None:
        self._wanted, self._files = said.text.casefold(), said.files
        self._stop = stop
        self._until = time.monotonic() + SEARCH_S
        self._left_files, self._left_bytes = MOST_FILES, SEARCH_BYTES
        self._found: list[str] = []
        self._cut = ""
        self._deeper = False

    def folder(self, place: Place, shown: str) -> None:
        for name in place.names():
            if self._over():
                return
            status, path = place.status(name), f"{shown}/{name}" if shown else name
            if status is None or is_link(status):
                continue
            if stat.S_ISDIR(status.st_mode):
                if name not in _PASSED_OVER:
                    self._below(place, name, path)
            elif stat.S_ISREG(status.st_mode) and fnmatch.fnmatch(name, self._files):
                self.file(place, name, path)

    def _below(self, place: Place, name: str, path: str) -> None:
        if path.count("/") >= DEEPEST:
            self._deeper = True
            return
        try:
            below = place.enter(name, path, make=False)
        except (OSError, ToolError):  # Not to be read, or swapped for a link just now.
            return
        try:
            self.folder(below, path)
        finally:
            below.close(-1)

    def file(self, place: Place, name: str, path: str, *, loudly: bool = False) -> None:
        """Look through one file. What is no text is passed over, unless it was named. Raises ToolError."""
        self._left_files -= 1
        try:
            data, _ = _whole(place, name, path)
            self._left_bytes -= len(data)
            text = text_of(data, path)
        except (OSError, ToolError):
            if loudly:
                raise
            return
        for number, line in enumerate(text.splitlines(), start=1):
            if self._wanted in line.casefold():
                self._found.append(f"{path}:{number}: {line.strip()[:LONGEST_LINE]}")
                if self._over():
                    return

    def _over(self) -> bool:
        if len(self._found) >= MOST_MATCHES:
            self._cut = f"the first {MOST_MATCHES} only: search for more words"
        elif self._left_files <= 0 or self._left_bytes <= 0 or time.monotonic() > self._until:
            self._cut = "the folder is large, and not all of it was searched: name a folder below"
        elif self._stop is not None and self._stop.is_set():
            self._cut = "stopped"
        return bool(self._cut)

    def told(self) -> str:
        text = "\n".join(self._found) or "Nothing was found."
        if self._deeper and not self._cut:
            self._cut = f"what is more than {DEEPEST} folders deep was not searched"
        return f"{text}\n[{self._cut}]" if self._cut else text


def _entries(place: Place, before: str, depth: int) -> Iterator[str]:
    for count, name in enumerate(place.names()):
        if count > MOST_ENTRIES:
            return
        status = place.status(name)
        if status is None:
            continue
        shown = "".join(letter if letter.isprintable() else "�" for letter in before + name)
        if is_link(status):
            yield f"{shown} (a link, not followed)"
        elif stat.S_ISDIR(status.st_mode):
            yield f"{shown}/"
            if depth > 1 and name not in _PASSED_OVER:
                try:
                    below = place.enter(name, before + name, make=False)
                except (OSError, ToolError):
                    continue
                try:
                    yield from _entries(below, f"{before}{name}/", depth - 1)
                finally:
                    below.close(-1)
        elif stat.S_ISREG(status.st_mode):
            yield f"{shown}  {status.st_size:,} bytes"
        else:
            yield f"{shown} (no file)"


def _asks_nobody(call: Call, title: str, perform: Callable[[threading.Event | None], Result]) -> Prepared:
    return Prepared(call, title, "", False, "", perform)
