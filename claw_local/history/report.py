"""What an import did, and what it left out and why. It must never know about file formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..language import N_, _, ngettext


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
    """One kind of thing that is left out, by its name here, and why."""

    kind: str
    why: str


HIDDEN = Reason("hidden", N_("not shown by the program they come from either"))
TOOLS = Reason("tools", N_("only what you and the assistant said is kept"))
THOUGHTS = Reason("thoughts", N_("only what you and the assistant said is kept"))
MEDIA = Reason("media", N_("only text is kept; their places are marked"))
EMPTY = Reason("empty", N_("nothing was said in them"))
UNKNOWN = Reason("unknown", N_("no chats of a kind that is known"))
DELETED = Reason("deleted", N_("deleted here, and not brought back"))
BROKEN = Reason("broken", N_("not whole"))


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
        return tuple(Skipped(_in_words(reason.kind, count), _(reason.why)) for reason, count in self._counts.items())


def _in_words(kind: str, count: int) -> str:
    words = {
        "hidden": ngettext("{count} hidden message", "{count} hidden messages", count, count=count),
        "tools": ngettext("{count} tool message", "{count} tool messages", count, count=count),
        "thoughts": ngettext("{count} thought", "{count} thoughts", count, count=count),
        "media": ngettext("{count} picture, sound or file", "{count} pictures, sounds and files", count, count=count),
        "empty": ngettext("{count} empty chat", "{count} empty chats", count, count=count),
        "unknown": ngettext("{count} entry", "{count} entries", count, count=count),
        "deleted": ngettext("{count} deleted chat", "{count} deleted chats", count, count=count),
        "broken": ngettext("{count} message", "{count} messages", count, count=count),
    }
    return words[kind]
