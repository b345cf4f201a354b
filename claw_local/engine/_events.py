"""Server-sent events out of bytes as they arrive (WHATWG HTML, §9.2). It must never know what the events say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

LONGEST_LINE = 2**23


class TooLong(ValueError):
    """A line has no end: what answers does not send events."""


def events(chunks: Iterable[bytes]) -> Iterator[str]:
    """The data of each event. The last one counts even if the empty line after it is missing.

    Lines end at CR, LF or both, and nowhere else: JSON may hold other line separators in its texts.
    """
    data: list[str] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield "\n".join(data)
            data = []
            continue
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
    if data:
        yield "\n".join(data)


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
