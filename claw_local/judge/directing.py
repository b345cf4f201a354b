"""Which hint a message gives, out of the person's own words and what judges wrote. It must never judge a reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import filters, hints, written


@dataclass(frozen=True)
class Direction:
    """What a message says of how the reply should have been.

    Attributes:
        hint: what may be kept; "" if nothing may.
        scope: "everywhere" or "turn"; "" without a hint.
        candidate: the hint before the filters, "" if there was none.
        refused: names of the filters that refused it.
        written: whether the hint is in the judge's words; else it is in the person's.
        dropped: hints in the judge's words that were not taken, each with the filters that refused it.
    """

    hint: str = ""
    scope: str = ""
    candidate: str = ""
    refused: tuple[str, ...] = ()
    written: bool = False
    dropped: tuple[tuple[str, tuple[str, ...]], ...] = ()


def direct(score: int, message: str, reply: str, offered: Sequence[str] = ()) -> Direction:
    """The hint of a message that judged a reply with `score`.

    A score of -1 may bring any hint, +1 only a clear wish ("great, but shorter next time"), 0 none. Of several written
    hints the longest that passes is kept (the paper's rule); where none does, the person's own words are the hint.

    Args:
        message: the person's, without attachments.
        offered: hints in the judge's words.
    """
    own = hints.extract(message) if score < 0 else hints.clear_wish(message) if score > 0 else ""
    if not own and score >= 0:
        return Direction()
    # A secret beside the hint says nothing against the hint; system talk beside it does.
    system_talk = filters.is_system_talk(message)
    dropped: list[tuple[str, tuple[str, ...]]] = []
    for text in sorted(dict.fromkeys(filter(None, offered)), key=len, reverse=True):
        refused = written.failed(text, message=message, reply=reply, own=own)
        if system_talk and "system_talk" not in refused:
            refused.append("system_talk")
        if not refused:
            return Direction(text, _scope(text, own), text, (), True, tuple(dropped))
        dropped.append((text, tuple(refused)))
    if not own:
        return Direction(dropped=tuple(dropped))
    refused = filters.failed(own)
    if system_talk and "system_talk" not in refused:
        refused.append("system_talk")
    if refused:
        return Direction("", "", own, tuple(refused), False, tuple(dropped))
    return Direction(own, hints.scope_of(own), own, (), False, tuple(dropped))


def _scope(text: str, own: str) -> str:
    """What is said of one answer's content stays with it, however the judge put it."""
    if own and hints.scope_of(own) == "turn":
        return "turn"
    return hints.scope_of(text)
