"""Exports made of JSON: one file, a folder, or a zip archive of them, read one chat at a time.

However large the export, only one chat is held in memory. It must never know what a chat looks like.
"""

from __future__ import annotations

import json
import re
import struct
import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from ..errors import HistoryError
from ..language import N_, _
from .recoded import end_in_utf8, opened_as_utf8

LONGEST_CHAT = 64 << 20
"""Bytes of JSON; no chat is that long, and what is would fill the memory."""
MOST_UNPACKED = 64 << 30
DEEPEST = 200
"""Lists and objects inside each other; chats hold less than twenty. The reader's memory grows with the square of it."""
WORST_RATIO = 200
"""Text packs ten times, repeated text twenty times. What packs more often is no export."""

_CONVERSATIONS = re.compile(r"conversations(?:-\d+)?\.json", re.IGNORECASE)
_TOP_KEYS = {"chats": "chats.item", "conversations": "conversations.item", "mapping": "", "chat_messages": ""}
_AGAIN = N_("Download or export it again")


class Part(NamedTuple):
    """One JSON file of an export; `size` in bytes, unpacked."""

    name: str
    size: int
    path: Path
    archive: zipfile.ZipFile | None = None

    def open(self) -> IO[bytes]:
        """Its text in UTF-8, if it is any."""
        return opened_as_utf8(self.open_raw)

    def open_raw(self) -> IO[bytes]:
        return self.archive.open(self.name) if self.archive is not None else self.path.open("rb")


class JsonExport:
    """The chats of an export, as plain dictionaries, and how far they have been read."""

    def __init__(self, path: Path, cancel: threading.Event | None = None) -> None:
        """`cancel`: set it to end the chats early, even in the middle of one; `stopped` tells that it did.

        Raises HistoryError: not readable, cut short, or without any chats in it.
        """
        self.stopped = False
        self._path = path
        self._cancel = cancel
        self._archive: zipfile.ZipFile | None = None
        self._parts = self._find()
        self._total = sum(part.size for part in self._parts) or 1
        self._before = 0
        self._reader: _Counted | None = None

    @property
    def fraction(self) -> float:
        now = self._reader.total if self._reader is not None else 0
        return min(1.0, (self._before + now) / self._total)

    def close(self) -> None:
        if self._archive is not None:
            self._archive.close()

    def chats(self) -> Iterator[Any]:
        """Every entry of the lists of chats. Raises HistoryError where the data is damaged."""
        import ijson

        for part in self._parts:
            try:
                prefix = self._prefix(part)
                with closing(part.open()) as file:
                    reader = self._reader = _Counted(file, part.name, self._cancel)
                    for item in ijson.items(reader, prefix, use_float=True):
                        reader.since = 0
                        yield item
            except _Stopped:
                self.stopped = True
                return
            except ijson.JSONError as error:
                raise HistoryError(
                    _too_large(part, error)
                    or _("{name} is damaged: it is no valid JSON. {again}.", name=part.name, again=_(_AGAIN))
                ) from error
            except _damage(ValueError) as error:
                raise HistoryError(
                    _("{name} is damaged ({error}). {again}.", name=part.name, error=error, again=_(_AGAIN))
                ) from error
            self._before += part.size
            self._reader = None

    def _find(self) -> list[Part]:
        if self._path.is_dir():
            found = sorted(file for file in self._path.iterdir() if _CONVERSATIONS.fullmatch(file.name))
            parts = [Part(file.name, file.stat().st_size, file) for file in found]
        elif zipfile.is_zipfile(self._path):
            parts = self._in_archive()
        else:
            parts = [Part(self._path.name, self._path.stat().st_size, self._path)]
            if parts[0].path.open("rb").read(4) == b"PK\x03\x04":
                raise HistoryError(
                    _("{path} is a zip archive that is cut short. {again}.", path=self._path, again=_(_AGAIN))
                )
        if not parts:
            raise HistoryError(
                _(
                    "There is no conversations.json in {path}. Give the zip file that ChatGPT "
                    "or Claude sent you, or the conversations.json in it.",
                    path=self._path,
                )
            )
        for part in parts:
            if part.archive is None:
                _look(part)
        return parts

    def _in_archive(self) -> list[Part]:
        try:
            self._archive = zipfile.ZipFile(self._path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OSError) as error:
            raise HistoryError(
                _("{path} is a damaged zip archive ({error}). {again}.", path=self._path, error=error, again=_(_AGAIN))
            ) from error
        parts = []
        for entry in sorted(self._archive.infolist(), key=lambda entry: entry.filename):
            folder, _slash, name = entry.filename.rpartition("/")
            if not _CONVERSATIONS.fullmatch(name) or "__MACOSX" in folder:
                continue
            if entry.flag_bits & 1:
                raise HistoryError(
                    _("{path} is locked with a password. Unpack it, and give the folder.", path=self._path)
                )
            if entry.file_size > WORST_RATIO * max(entry.compress_size, 1 << 16):
                raise HistoryError(
                    _(
                        "{filename} in {path} would unpack to {file_size:,} MB from "
                        "{compress_size:,} KB: that is no export of chats. Nothing was read.",
                        filename=entry.filename,
                        path=self._path,
                        file_size=entry.file_size >> 20,
                        compress_size=entry.compress_size >> 10,
                    )
                )
            parts.append(Part(entry.filename, entry.file_size, self._path, self._archive))
        if sum(part.size for part in parts) > MOST_UNPACKED:
            raise HistoryError(_("{path} would unpack to more than 64 GB. Nothing was read.", path=self._path))
        return parts

    def _prefix(self, part: Part) -> str:
        """Where in a file the chats are."""
        import ijson

        try:
            with closing(part.open()) as file:
                for prefix, event, value in ijson.parse(_Counted(file, part.name, self._cancel), use_float=True):
                    if event == "start_array" and not prefix:
                        return "item"
                    if event == "map_key" and not prefix and value in _TOP_KEYS:
                        return _TOP_KEYS[value]
                    if prefix == "version" and isinstance(value, int) and value > 1:
                        raise HistoryError(
                            _("{name} was written by a newer claw-local. Update claw-local.", name=part.name)
                        )
        except ijson.JSONError as error:
            raise HistoryError(
                _too_large(part, error)
                or _(
                    "{name} is no file of chats: neither JSON, a zip archive nor an SQLite database. {known}",
                    name=part.name,
                    known=_(_KNOWN),
                )
            ) from error
        except _damage(NotImplementedError) as error:
            raise HistoryError(
                _("{name} is damaged ({error}). {again}.", name=part.name, error=error, again=_(_AGAIN))
            ) from error
        raise HistoryError(_("There are no chats in {name}. {known}", name=part.name, known=_(_KNOWN)))


_KNOWN = N_(
    "These can be imported: ChatGPT's and Claude's data exports, the databases of oterm, elia and llm, and what "
    "`claw-local history export --format json` writes."
)


def _too_large(part: Part, error: Exception) -> str:
    """What to say where a number is what the reader stumbled over; "" if it is not. JSON allows numbers of any size."""
    if "overflow" not in str(error):
        return ""
    return _("{name} holds a number that is too large to be read. {again}.", name=part.name, again=_(_AGAIN))


def _damage(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """What reading a damaged file or archive raises, and others. Python may have been built without LZMA."""
    found: tuple[type[Exception], ...] = (zipfile.BadZipFile, zlib.error, EOFError, OSError, *others)
    with suppress(ImportError):
        from lzma import LZMAError

        found = (*found, LZMAError)
    return found


def _is_json_without_chats(text: bytes) -> bool:
    """Whether it is JSON, but a mere null, number or text."""
    try:
        return not isinstance(json.loads(text), (dict, list))
    except (ValueError, RecursionError):
        return False


def _look(part: Part) -> None:
    """Refuse at once what is cut short, before anything is written."""
    if not part.size:
        raise HistoryError(_("{path} is empty. {again}.", path=part.path, again=_(_AGAIN)))
    with part.open() as file:
        begin = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
        start = begin[:1]
    with part.open_raw() as file:
        mark = file.read(2)
        file.seek(max(0, (part.size - 4096) & ~1))
        end = end_in_utf8(file.read(), mark).rstrip()[-1:]
    ended = end == {b"[": b"]", b"{": b"}"}.get(start)
    # What has a word in brackets at its beginning is a settings file.
    words = start == b"[" and begin[1:].lstrip()[:1] not in (b"{", b"[", b"]", b"")
    if part.size <= len(begin) + 64 and _is_json_without_chats(begin):
        raise HistoryError(_("There are no chats in {name}. {known}", name=part.path, known=_(_KNOWN)))
    if start not in (b"[", b"{") or (words and not ended):
        raise HistoryError(
            _(
                "{path} is no file of chats: neither JSON, a zip archive nor an SQLite database. {known}",
                path=part.path,
                known=_(_KNOWN),
            )
        )
    if not ended:
        raise HistoryError(
            _(
                "{path} is cut short: its end is missing. {again}. Nothing was imported.",
                path=part.path,
                again=_(_AGAIN),
            )
        )


class _Stopped(Exception):
    """Whoever reads asked for an end."""


class _Counted:
    """A file that knows how much of it was read, and stops when told to, at a chat without end and at one too deep."""

    def __init__(self, file: IO[bytes], name: str, cancel: threading.Event | None) -> None:
        self._file = file
        self._name = name
        self._cancel = cancel
        self._depth = _Depth()
        self.total = 0
        self.since = 0

    def read(self, size: int = -1) -> bytes:
        if self._cancel is not None and self._cancel.is_set():
            raise _Stopped
        data = self._file.read(size)
        if not self.total:
            data = data.removeprefix(b"\xef\xbb\xbf")
        self.total += len(data)
        self.since += len(data)
        if self.since > LONGEST_CHAT:
            raise HistoryError(
                _(
                    "One entry of {name} is longer than {most} MB: that is no chat. What came before it is imported.",
                    name=self._name,
                    most=LONGEST_CHAT >> 20,
                )
            )
        if self._depth.passes(DEEPEST, data):
            raise HistoryError(
                _(
                    "{name} holds lists more than {deepest} deep inside each other: no chat does. {again}.",
                    name=self._name,
                    deepest=DEEPEST,
                    again=_(_AGAIN),
                )
            )
        return data


class _Depth:
    """How deep JSON goes, counted in its bytes as they come, before a reader makes anything of them."""

    _AT_ONCE = 128
    _NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

    def __init__(self) -> None:
        self._now = 0
        self._in_string = False
        self._held = b""

    def passes(self, limit: int, data: bytes) -> bool:
        """Whether it is greater than `limit` anywhere within these bytes, which follow those before."""
        data = self._held + data
        # A backslash at the end is held back until what it stands before is there.
        self._held = b"\\" if (len(data) - len(data.rstrip(b"\\"))) % 2 else b""
        data = data[: len(data) - len(self._held)]
        pieces = data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[self._in_string :: 2]).translate(None, self._NO_BRACKETS)
        self._in_string ^= len(pieces) % 2 == 0
        return any(self._count(limit, outside[at : at + self._AT_ONCE]) for at in range(0, len(outside), self._AT_ONCE))

    def _count(self, limit: int, brackets: bytes) -> bool:
        opening = brackets.count(b"[") + brackets.count(b"{")
        if self._now + opening <= limit:
            # The usual case, without a look at each.
            self._now += 2 * opening - len(brackets)
            return False
        for bracket in brackets:
            self._now += 1 if bracket in b"[{" else -1
            if self._now > limit:
                return True
        return False
