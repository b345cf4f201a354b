"""What an import did, and what it left out and why. It must never know about file formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Progress(NamedTuple):
    """How far an import is: `fraction` of the file, from 0 to 1; chats and messages that were new so far."""

    fraction: float
    chats: int
    messages: int


class Skipped(NamedTuple):
    what: str
    why: str


@dataclass(frozen=True)
class ImportReport:
    """The outcome of an import.

    Attributes:
        chats, messages: how many were new.
        already: chats that were there before and had nothing new.
        grown: chats that were there before and got new messages.
        skipped: what was left out, and why.
        source: whose chats they are: "ChatGPT", "Claude", "oterm", "elia", "llm" or "claw-local".
        stopped: whether it was stopped before its end. What was read until then is there and whole.
    """

    chats: int
    messages: int
    already: int
    skipped: tuple[Skipped, ...]
    grown: int = 0
    source: str = ""
    stopped: bool = False


class Reason(NamedTuple):
    """One kind of thing that is left out: what one and several of it are called, and why."""

    one: str
    many: str
    why: str


HIDDEN = Reason("hidden message", "hidden messages", "not shown by the program they come from either")
TOOLS = Reason("tool message", "tool messages", "only what you and the assistant said is kept")
THOUGHTS = Reason("thought", "thoughts", "only what you and the assistant said is kept")
MEDIA = Reason("picture, sound or file", "pictures, sounds and files", "only text is kept; their places are marked")
EMPTY = Reason("empty chat", "empty chats", "nothing was said in them")
UNKNOWN = Reason("entry", "entries", "no chats of a kind that is known")
DELETED = Reason("deleted chat", "deleted chats", "deleted here, and not brought back")
BROKEN = Reason("message", "messages", "not whole")


class Skips:
    """Counts what is left out, by reason."""

    def __init__(self) -> None:
        self._counts: dict[Reason, int] = {}

    def add(self, reason: Reason, count: int = 1) -> None:
        if count:
            self._counts[reason] = self._counts.get(reason, 0) + count

    def count(self, reason: Reason) -> int:
        return self._counts.get(reason, 0)

    def report(self) -> tuple[Skipped, ...]:
        return tuple(
            Skipped(f"{count} {reason.one if count == 1 else reason.many}", reason.why)
            for reason, count in self._counts.items()
        )
