"""Chats as text to be carried away: Markdown to read, JSON to import again. It must never write files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..store import Chat, StoredMessage

_NAMES = {"user": "You", "assistant": "Assistant", "tool": "Tool", "system": "System"}


def markdown(chat: Chat, branch: Sequence[StoredMessage]) -> str:
    """One branch of a chat."""
    lines = [f"# {_one_line(chat.title) or 'untitled'}", "", f"*{_time(chat.created_at)}*", ""]
    if chat.system:
        lines += ["> " + line for line in chat.system.splitlines()] + [""]
    for message in branch:
        name = _NAMES.get(message.role, message.role)
        model = f" ({_one_line(message.model)})" if message.role == "assistant" and message.model else ""
        stopped = ["", "*(not finished)*"] if message.state in ("interrupted", "failed", "streaming") else []
        lines += [f"## {name}{model}", "", message.content.strip("\n"), *stopped, ""]
    return "\n".join(lines).rstrip() + "\n"


def json_pieces(header: dict[str, Any], chats: Iterable[dict[str, Any]]) -> Iterator[str]:
    """An object with the header's fields and the list `chats`, written one chat at a time."""
    yield json.dumps(header, ensure_ascii=False)[:-1] + ', "chats": ['
    between = "\n"
    for chat in chats:
        yield between + json.dumps(chat, ensure_ascii=False)
        between = ",\n"
    yield "\n]}\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _time(moment: str) -> str:
    return moment[:16].replace("T", " ") + " UTC"
