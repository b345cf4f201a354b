"""Chats as ChatGPT's data export holds them: `conversations.json`, a list of trees.

Each conversation has a `mapping` from node ids to {message, parent, children} and a `current_node`. OpenAI documents
none of it; this follows exports as they were seen from 2023 to 2026.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from ...store.records import GivenChat
from ..report import HIDDEN, MEDIA, THOUGHTS, TOOLS, Skips
from .tree import Said, clean, entries, fenced, fields, grow, key_of, latest, moment, title, words

ORIGIN = "ChatGPT"

_THOUGHTS = ("thoughts", "reasoning_recap")
_HIDDEN = ("user_editable_context", "model_editable_context", "system_error")
_CITATION = re.compile(" ?\ue200[^\ue201]*\ue201?")
"""Where the page shows a link to a source."""


def is_chat(item: dict[str, Any]) -> bool:
    return isinstance(item.get("mapping"), dict)


def chat(item: dict[str, Any], skips: Skips) -> GivenChat:
    """One conversation. One without messages that are shown has none."""
    mapping = item["mapping"]
    begun = moment(item.get("create_time"))
    said = [_said(key, fields(node), skips) for key, node in mapping.items()]
    # Siblings stand in the order of their parent's `children`.
    order = {str(child): place for node in mapping.values() for place, child in enumerate(_children(node))}
    said.sort(key=lambda entry: order.get(entry.key, 0))
    messages, head = grow(said, key_of(item.get("current_node")) or None, begun)
    name = title(item.get("title"))
    return GivenChat(
        origin=ORIGIN,
        origin_id=key_of(item.get("conversation_id"))
        or key_of(item.get("id"))
        or _stand_in(name, begun, list(mapping)),
        title=name,
        messages=messages,
        head=head,
        created_at=begun or (messages[0].created_at if messages else ""),
        updated_at=moment(item.get("update_time")) or latest(messages),
        archived=item.get("is_archived") is True,
    )


def _children(node: Any) -> list[Any]:
    children = fields(node).get("children")
    return children if isinstance(children, list) else []


def _said(key: str, node: dict[str, Any], skips: Skips) -> Said:
    message = fields(node.get("message"))
    entry = Said(clean(key), key_of(node.get("parent")) or None, "")
    content, metadata = fields(message.get("content")), fields(message.get("metadata"))
    role, kind = words(fields(message.get("author")).get("role")), words(content.get("content_type"))
    hidden = metadata.get("is_visually_hidden_from_conversation") is True
    if not message or (role == "system" and not hidden and not _text(content)):
        return entry
    if kind in _THOUGHTS or message.get("channel") == "analysis":
        skips.add(THOUGHTS)
    elif hidden or kind in _HIDDEN or role == "system":
        skips.add(HIDDEN)
    elif role == "user" or (role == "assistant" and message.get("recipient") in (None, "", "all")):
        entry.role = role
        entry.text = _shown(role, kind, content, metadata, skips)
    elif role == "assistant" and (document := _canvas(message, content)):
        entry.role, entry.text = role, document
    else:
        skips.add(TOOLS)
    entry.created_at = moment(message.get("create_time"))
    entry.model = words(metadata.get("model_slug")) if role == "assistant" else ""
    if message.get("status") == "in_progress" or fields(metadata.get("finish_details")).get("type") == "interrupted":
        entry.state = "interrupted"
    return entry


def _shown(role: str, kind: str, content: dict[str, Any], metadata: dict[str, Any], skips: Skips) -> str:
    text = _CITATION.sub("", _text(content)).strip()
    if kind == "code" and text:
        language = words(content.get("language"))
        text = fenced(text, "" if language == "unknown" else language)
    marks = [_mark(part) for part in entries(content.get("parts"))]
    marks += [f"[{words(a.get('name')) or 'file'}]" for a in entries(metadata.get("attachments")) if role == "user"]
    marks = [mark for mark in marks if mark]
    skips.add(MEDIA, len(marks))
    return "\n\n".join(part for part in (" ".join(dict.fromkeys(marks)), text) if part)


def _text(content: dict[str, Any]) -> str:
    parts = content.get("parts")
    found = [_spoken(part) for part in parts] if isinstance(parts, list) else [words(content.get("text"))]
    return "\n".join(part for part in found if part.strip())


def _spoken(part: Any) -> str:
    if isinstance(part, dict):
        # What was said aloud comes with its transcription.
        return words(part.get("text"))
    return words(part)


def _mark(part: dict[str, Any]) -> str:
    if words(part.get("text")):
        return ""
    kind = words(part.get("content_type"))
    return (
        "[image]" if "image" in kind else "[audio]" if "audio" in kind else "[video]" if "video" in kind else "[file]"
    )


def _canvas(message: dict[str, Any], content: dict[str, Any]) -> str:
    """A document written in the side pane: to the model it is a tool call, to the person it is the answer."""
    if message.get("recipient") != "canmore.create_textdoc":
        return ""
    try:
        document = fields(json.loads(_text(content)))
    except (ValueError, RecursionError):
        return ""
    text = words(document.get("content"))
    if not text.strip() or words(document.get("type")) == "document":
        return text
    return fenced(text)


def _stand_in(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:32]
