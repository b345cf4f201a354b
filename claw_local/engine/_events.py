"""Server-sent events out of bytes as they arrive (WHATWG HTML, §9.2). It must never know what the events say."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

LONGEST_LINE = 2**23
LONGEST_EVENT = 2**23


class TooLong(ValueError):
    """A line or an event has no end: what answers does not send events."""


class Patience:
    """Gives up on a server that keeps the line open (with pings, say) and yet says nothing of use."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = time.monotonic()

    def renew(self) -> None:
        """Something of use came, or the wait was not the server's."""
        self._since = time.monotonic()

    def watch(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The chunks, as long as patience lasts. Raises TimeoutError once it is over."""
        for chunk in chunks:
            if time.monotonic() - self._since > self._seconds:
                raise TimeoutError("nothing of use came for too long")
            yield chunk


def events(chunks: Iterable[bytes]) -> Iterator[str]:
    """The data of each event. The last one counts even if the empty line after it is missing.

    Lines end at CR, LF or both, and nowhere else: JSON may hold other line separators in its texts.

    Raises:
        TooLong: a line or an event does not end.
    """
    data: list[str] = []
    size = 0
    for line in _lines(chunks):
        if not line:
            if data:
                yield "\n".join(data)
            data, size = [], 0
            continue
        name, _, value = line.partition(b":")
        if name == b"data":
            size += len(value) + 1
            if size > LONGEST_EVENT:
                raise TooLong("an event without an end")
            data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
    if data:
        yield "\n".join(data)


def bounded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same chunks, for a reader that keeps what it has of a line, however long that becomes.

    Raises:
        TooLong: a line does not end.
    """
    size = 0
    for chunk in chunks:
        last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        size = len(chunk) - 1 - last if last >= 0 else size + len(chunk)
        if size > LONGEST_LINE:
            raise TooLong("a line without an end")
        yield chunk


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    held = b""
    for chunk in chunks:
        held += chunk
        if len(held) > LONGEST_LINE:
            raise TooLong("a line without an end")
        # A CR at the very end may be half of a CR LF: it waits for the next chunk.
        ends_in_cr = held.endswith(b"\r")
        *whole, rest = (held[:-1] if ends_in_cr else held).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        held = rest + (b"\r" if ends_in_cr else b"")
        yield from whole
    if held:
        yield held.rstrip(b"\r")
