"""Sessions: which conversation a request belongs to, and what in it is new.

A client that keeps its own history sends all of it each time. Each message has a fingerprint made of it and of all
before it; the longest beginning that is known says where the conversation goes on. So editing an earlier message makes
a branch, and asking again makes another version, as in a chat of our own. It must never know about HTTP.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ..store import Store

IDLE_H = 24.0
"""A session that is named ends after so many hours of silence: the same name then begins another one."""


@dataclass(frozen=True)
class Line:
    """One message of a history, no system prompt. `calls`: (name, arguments as JSON text) of an assistant's."""

    role: str
    text: str
    calls: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Place:
    """Where a request goes on.

    Attributes:
        chat_id: the chat; None for a new one.
        parent_id: the stored message before the first new one.
        known: how many of the request's messages are stored already.
        ids: the stored messages of these, as far as each is known; 0 where it is not.
        again: the request ends in a message that is known: its answer is asked for once more.
    """

    chat_id: int | None
    parent_id: int | None
    known: int
    ids: tuple[int, ...] = ()
    again: bool = False


NOWHERE = Place(None, None, 0)


def fingerprints(lines: Iterable[Line]) -> list[str]:
    """One for each message, of it and all before it. White space at the ends and the way JSON is written do not
    count: clients change both."""
    found = []
    before = ""
    for line in lines:
        calls = [[name, _canonical(arguments)] for name, arguments in line.calls]
        said = json.dumps([before, line.role, " ".join(line.text.split()), calls], ensure_ascii=False)
        before = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:40]
        found.append(before)
    return found


def find(store: Store, key_id: int, lines: Sequence[Line], *, name: str = "", scope: str = "") -> Place:
    """Where a request goes on.

    Args:
        lines: its messages, oldest first; the last one is to be answered.
        name: what the client calls the session; "" if it does not.
        scope: who speaks, where the client says so: histories of others are not looked at. A session by that name goes
            on only where its history does.
    """
    prints = fingerprints(lines)
    chat_id = None
    if name:
        chat_id = store.sessions.named(key_id, name, since=_ago(IDLE_H))
    known = store.sessions.known(key_id, [_scoped(print_, scope) for print_ in prints])
    at = {
        place: [(message, chat) for message, chat in known.get(_scoped(print_, scope), ()) if chat_id in (None, chat)]
        for place, print_ in enumerate(prints)
    }
    if name and chat_id is None:
        return NOWHERE
    last = max((place for place, found in at.items() if found), default=-1)
    if last < 0:
        # A named session goes on whatever history is sent: some send the newest message alone, some a summary.
        head = store.chats.get(chat_id).head_id if chat_id is not None else None
        return Place(chat_id, head, 0)
    again = last == len(lines) - 1
    if again and len(lines) == 1 and not name:
        return NOWHERE  # The same first words once more are another conversation, not another version of this one.
    message_id, found_chat = at[last][0]
    branch = {message.id for message in store.messages.branch(message_id)}
    ids = tuple(next((message for message, chat in at[place] if message in branch), 0) for place in range(last + 1))
    return Place(found_chat, message_id, last + 1, ids, again)


def note(store: Store, key_id: int, print_: str, message_id: int, *, scope: str = "") -> None:
    """Let a stored message be known again."""
    store.sessions.note(key_id, message_id, _scoped(print_, scope))


def _scoped(print_: str, scope: str) -> str:
    return hashlib.sha256(f"{scope}\0{print_}".encode("utf-8", "replace")).hexdigest()[:40] if scope else print_


def _canonical(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments.strip()


def _ago(hours: float) -> str:
    return (datetime.now(UTC) - timedelta(hours=hours)).isoformat(timespec="microseconds")
