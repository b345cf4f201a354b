"""Attachments inside a message: a person's message may carry a file's text, fenced and named, beside their own words.

The one convention for writing and reading them, so that what a file says is never taken for what the person wishes. It
must never read a file itself.

An attachment stands on lines of its own between two fences of backticks, the first of which says `attached` and the
name. A message's fences are longer than any run of backticks in it, so no text can end its own fence or open another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SHORTEST_FENCE = 4
"""Longer than the usual fence of a code block."""

_RUN = re.compile(r"`+")
_OPENS = "`attached "
"""The last backtick of an opening fence and what follows it."""


@dataclass(frozen=True)
class Attachment:
    """A text that is not the person's own.

    Attributes:
        name: what the person called it, on one line.
    """

    name: str
    text: str


Part = str | Attachment


def compose(parts: Sequence[Part]) -> str:
    """One message from the person's words and attachments, in this order."""
    # NUL is taken out of every message later, and two runs of backticks around one would become a longer one.
    parts = [_whole(part) for part in parts]
    texts = [part if isinstance(part, str) else part.text for part in parts]
    longest = max((len(run) for text in texts for run in _RUN.findall(text)), default=0)
    fence = "`" * max(SHORTEST_FENCE, longest + 1)
    message = ""
    for part in parts:
        if isinstance(part, str):
            after_block = bool(message) and bool(part)
            message += ("\n" if after_block and not part.startswith("\n") else "") + part
        else:
            start = "" if not message or message.endswith("\n\n") else "\n" if message.endswith("\n") else "\n\n"
            end = "" if not part.text or part.text.endswith("\n") else "\n"
            message += f"{start}{fence}attached {_one_line(part.name)}\n{part.text}{end}{fence}\n"
    return message.rstrip("\n") if parts and isinstance(parts[-1], Attachment) else message


def split(message: str) -> list[Part]:
    """The person's words and the attachments of a message, in order. An attachment that never ends goes to the end."""
    parts: list[Part] = [message]
    # The longest fences are the message's own: shorter ones are text inside an attachment, or typed by hand.
    for length in sorted(_fences(message), reverse=True):
        parts = [piece for part in parts for piece in (_cut(part, length) if isinstance(part, str) else [part])]
    return [part for part in parts if part]


def own_words(message: str) -> str:
    """What the person said themselves: the message without its attachments."""
    parts = split(message)
    if parts == [message]:
        return message
    return "\n\n".join(part.strip("\n") for part in parts if isinstance(part, str) and part.strip())


def _fences(message: str) -> set[int]:
    """The lengths of the fences that may begin an attachment."""
    lengths = set()
    place = message.find(_OPENS)
    while place >= 0:
        start = place
        while start and message[start - 1] == "`":
            start -= 1
        if place + 1 - start >= SHORTEST_FENCE and message[start - 1 : start] in ("", "\n"):
            lengths.add(place + 1 - start)
        place = message.find(_OPENS, place + 1)
    return lengths


def _cut(text: str, length: int) -> Iterator[Part]:
    fence = "`" * length
    end = 0
    while (start := _at_line_start(text, fence + _OPENS[1:], end)) >= 0:
        name_end = text.find("\n", start)
        name_end = len(text) if name_end < 0 else name_end
        close = _closing(text, fence, name_end)
        yield text[end:start]
        yield Attachment(text[start + length + len(_OPENS) - 1 : name_end].strip(), text[name_end + 1 : close])
        newline = text.find("\n", close)
        end = len(text) if newline < 0 else newline + 1
    yield text[end:]


def _at_line_start(text: str, what: str, start: int) -> int:
    place = text.find(what, start)
    while place > 0 and text[place - 1] != "\n":
        place = text.find(what, place + 1)
    return place


def _closing(text: str, fence: str, start: int) -> int:
    """Where the line that is nothing but this fence begins; the end of the text if there is none."""
    place = _at_line_start(text, fence, start)
    while place >= 0:
        rest = text.find("\n", place)
        if not text[place + len(fence) : len(text) if rest < 0 else rest].strip(" \t"):
            return place
        place = _at_line_start(text, fence, place + 1)
    return len(text)


def _whole(part: Part) -> Part:
    return part.replace("\0", "") if isinstance(part, str) else Attachment(part.name, part.text.replace("\0", ""))


def _one_line(name: str) -> str:
    return " ".join(name.replace("`", "'").split()) or "text"
