"""From what a program calls messages to a tree of what was said. It must never know which program."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...store.records import GivenMessage, MessageState, SignalSource

LONGEST_TITLE = 200


@dataclass
class Said:
    """One entry of a foreign tree. Without text it is left out, and what follows it follows what is before it."""

    key: str
    parent: str | None
    role: str
    text: str = ""
    created_at: str = ""
    model: str = ""
    state: MessageState = "done"
    finish_reason: str = ""
    signals: tuple[tuple[SignalSource, int, str], ...] = ()
    alone: bool = False
    """Never to be joined with the message before it."""


def grow(entries: Iterable[Said], head: str | None, begun: str) -> tuple[tuple[GivenMessage, ...], str | None]:
    """The messages of a chat, each after its parent, and the last one of the branch that was shown.

    Several replies in a row (a tool was used between them) become one. Loops and parents that are missing do no harm.
    `begun`: the time for messages that have none.
    """
    nodes: dict[str, Said] = {}
    for entry in entries:
        if entry.key in nodes:  # Two that have one name, or none, are two all the same.
            entry.key = f"{entry.key} {len(nodes)}"
        nodes[entry.key] = entry
    children: dict[str | None, list[str]] = {}
    for entry in nodes.values():
        parent = entry.parent if entry.parent in nodes and entry.parent != entry.key else None
        children.setdefault(parent, []).append(entry.key)
    kept: dict[str, Said] = {}
    place: dict[str, str | None] = {}  # Where in the kept tree each entry ended up.
    for key, parent in _walk(nodes, children):
        entry = nodes[key]
        before = place.get(parent) if parent is not None else None
        if entry.text.strip():
            kept[key] = entry
            entry.parent = before
            entry.created_at = entry.created_at or (kept[before].created_at if before is not None else begun)
            place[key] = key
        else:
            place[key] = before
    holder = _join_replies(kept)
    messages = tuple(
        GivenMessage(
            key=entry.key,
            parent=holder[entry.parent].key if entry.parent is not None else None,
            role=entry.role,
            content=entry.text,
            created_at=entry.created_at,
            model=entry.model,
            state=entry.state,
            finish_reason=entry.finish_reason,
            signals=entry.signals,
        )
        for entry in kept.values()
    )
    last = place.get(head) if head is not None else None
    return messages, holder[last].key if last is not None else None


def _walk(nodes: dict[str, Said], children: dict[str | None, list[str]]) -> Iterable[tuple[str, str | None]]:
    """Every entry once, each after its parent."""
    seen: set[str] = set()
    for start in (*children.get(None, []), *nodes):
        waiting: list[tuple[str, str | None]] = [(start, None)]
        while waiting:
            key, parent = waiting.pop()
            if key not in seen:
                seen.add(key)
                yield key, parent
                waiting += [(child, key) for child in reversed(children.get(key, []))]


def _join_replies(kept: dict[str, Said]) -> dict[str, Said]:
    """Put replies in a row together. Returns which entry each one is in now."""
    followers: dict[str | None, int] = {}
    for entry in kept.values():
        followers[entry.parent] = followers.get(entry.parent, 0) + 1
    holder: dict[str, Said] = {}
    for key, entry in list(kept.items()):
        before = holder[entry.parent] if entry.parent is not None else None
        lonely = followers[entry.parent] == 1 and not entry.alone
        if before is not None and lonely and entry.role == before.role == "assistant":
            before.text += f"\n\n{entry.text}"
            before.model, before.state = entry.model or before.model, entry.state
            # It is known by its last part: one that has grown since is another version.
            before.key = key
            holder[key] = before
            del kept[key]
        else:
            holder[key] = entry
    return holder


def moment(value: Any) -> str:
    """A time, however it was written down, as it is stored: UTC, ISO 8601. What cannot be read is ""."""
    try:
        if isinstance(value, bool) or value is None:
            return ""
        if isinstance(value, (int, float)):
            if not math.isfinite(value) or value <= 0:
                return ""
            seconds = value / 1000 if value > 1e11 else value
            return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
        found = datetime.fromisoformat(str(value).strip())
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        return found.isoformat(timespec="microseconds")
    except (ValueError, OverflowError, OSError):
        return ""


def clean(text: str) -> str:
    """Text that can be stored: no NUL, no half surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def words(value: Any) -> str:
    """A value as text, if it is one."""
    return clean(value) if isinstance(value, str) else ""


def fenced(text: str, language: str = "") -> str:
    """A text as a block of code, whatever it holds itself."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"


def title(value: Any) -> str:
    return " ".join(words(value).split())[:LONGEST_TITLE]


def entries(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, if it is one."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def key_of(value: Any) -> str:
    return clean(str(value)) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def latest(messages: Iterable[GivenMessage]) -> str:
    return max((message.created_at for message in messages), default="")
