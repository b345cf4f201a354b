"""Stored messages as widgets. It must never know where they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..text import count
from .bubbles import Bubble, Question

if TYPE_CHECKING:
    from claw_local.store import StoredMessage

    from ..branch import Shown


def drawn_message(shown: Shown) -> Question | Bubble:
    """The widget for a message."""
    message = shown.message
    if message.role == "user":
        return Question(message.content, message_id=message.id, versions=shown.versions)
    state = "cut" if message.state == "done" and message.finish_reason == "length" else message.state
    bubble = Bubble(message.content, message_id=message.id, state=state, detail=describe(message))
    bubble.tell(shown.signals, shown.versions, shown.because)
    return bubble


def tell(widget: Question | Bubble, shown: Shown) -> None:
    """What is known beside the text of a drawn message has changed."""
    if isinstance(widget, Bubble):
        widget.tell(shown.signals, shown.versions, shown.because)
    else:
        widget.tell(shown.versions)


def describe(message: StoredMessage) -> str:
    """How a stored reply was made, in a few words."""
    parts = []
    if message.response_ids:
        parts.append(count(len(message.response_ids), "token"))
    total = message.timings.get("total") or message.timings.get("total_s")
    if total:
        parts.append(f"{total:.1f} s")
    parts.append(f"adapter {message.adapter_id}" if message.adapter_id else "base model")
    return " · ".join(parts)
