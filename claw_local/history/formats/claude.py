"""Chats as Claude's data export holds them: `conversations.json`, a list with `chat_messages`.

A message has `sender`, `text` and, in newer exports, `content` blocks and `parent_message_uuid`. Anthropic documents
none of it; this follows exports as they were seen from 2024 to 2026.
"""

from __future__ import annotations

import re
from typing import Any

from ...signals.attached import Attachment, compose
from ...store.records import GivenChat
from ..report import BROKEN, MEDIA, THOUGHTS, TOOLS, Skips
from .tree import Said, entries, fenced, fields, grow, key_of, latest, moment, title, words

ORIGIN = "Claude"

_UNSHOWN = re.compile(r"\n*```\nThis block is not supported on your current device yet\.\n```\n*")
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def is_chat(item: dict[str, Any]) -> bool:
    return isinstance(item.get("chat_messages"), list)


def chat(item: dict[str, Any], skips: Skips) -> GivenChat:
    """One conversation. One without messages has none."""
    given = entries(item["chat_messages"])
    skips.add(BROKEN, len(item["chat_messages"]) - len(given))
    keys = [key_of(message.get("uuid")) or f"message {place}" for place, message in enumerate(given)]
    branched = any(key_of(message.get("parent_message_uuid")) in keys for message in given)
    said = []
    for place, message in enumerate(given):
        before = keys[place - 1] if place else None
        parent = key_of(message.get("parent_message_uuid")) if branched else before
        said.append(_said(keys[place], parent or None, message, skips))
    begun = moment(item.get("created_at"))
    head = key_of(item.get("current_leaf_message_uuid"))
    messages, shown = grow(said, head if head in keys else (keys[-1] if keys else None), begun)
    return GivenChat(
        origin=ORIGIN,
        origin_id=key_of(item.get("uuid")) or f"{begun} {title(item.get('name'))}",
        title=title(item.get("name")),
        messages=messages,
        head=shown,
        created_at=begun or (messages[0].created_at if messages else ""),
        updated_at=moment(item.get("updated_at")) or latest(messages),
    )


def _said(key: str, parent: str | None, message: dict[str, Any], skips: Skips) -> Said:
    entry = Said(
        key, parent, _ROLES.get(words(message.get("sender")), ""), created_at=moment(message.get("created_at"))
    )
    entry.model = words(message.get("model")) if entry.role == "assistant" else ""
    if not entry.role:
        skips.add(BROKEN)
        return entry
    blocks = [_block(block, skips) for block in entries(message.get("content"))]
    text = "\n\n".join(block for block in blocks if block.strip())
    text = text or _UNSHOWN.sub("\n\n", words(message.get("text"))).strip()
    parts: list[str | Attachment] = [text] if text else []
    named = set()
    for attachment in entries(message.get("attachments")):
        name, content = words(attachment.get("file_name")), words(attachment.get("extracted_content"))
        named.add(name)
        if content.strip():
            parts.append(Attachment(name or "pasted text", content))
        else:
            parts.append(f"\n\n[{name or 'file'}]")
            skips.add(MEDIA)
    for file in entries(message.get("files")):
        name = words(file.get("file_name"))
        if name not in named:
            parts.append(f"\n\n[{name or 'file'}]")
            skips.add(MEDIA)
    entry.text = compose(parts).strip("\n")
    return entry


def _block(block: dict[str, Any], skips: Skips) -> str:
    kind = words(block.get("type"))
    if kind in ("text", "voice_note"):
        return words(block.get("text"))
    if kind == "thinking":
        skips.add(THOUGHTS)
    elif kind == "tool_use" and words(block.get("name")) == "artifacts" and (document := _artifact(block)):
        return document
    elif kind in ("tool_use", "tool_result"):
        skips.add(TOOLS)
    elif "image" in kind or "document" in kind:
        skips.add(MEDIA)
        return f"[{kind}]"
    return ""


def _artifact(block: dict[str, Any]) -> str:
    """A document written in the side pane: to the model it is a tool call, to the person it is the answer."""
    given = fields(block.get("input"))
    text = words(given.get("content"))
    if not text.strip() or words(given.get("type")) == "text/markdown":
        return text
    return fenced(text, words(given.get("language")))
