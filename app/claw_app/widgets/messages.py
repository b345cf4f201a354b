"""Stored messages as widgets. It must never know where they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claw_local.language import N_, _, ngettext

from .bubbles import Bubble, Question
from .tool_use import ToolUse

if TYPE_CHECKING:
    from claw_local.store import StoredMessage

    from ..branch import Shown

_BY = {"you": N_("your version"), "elsewhere": N_("written elsewhere")}


def drawn_message(shown: Shown) -> Question | Bubble | ToolUse:
    """The widget for a message."""
    message = shown.message
    if message.role == "tool":
        return ToolUse(
            shown.call.title if shown.call else _("a tool"),
            message.content,
            state=shown.call.state if shown.call else "done",
            message_id=message.id,
        )
    if message.role == "user":
        return Question(message.content, message_id=message.id, versions=shown.versions)
    state: str = "cut" if message.state == "done" and message.finish_reason == "length" else message.state
    if shown.said != message.content:
        state = "called"
    detail = _(_BY[shown.by]) if shown.by else describe(message)
    bubble = Bubble(shown.said, message_id=message.id, state=state, detail=detail)
    bubble.tell(shown.signals, shown.versions, shown.because)
    return bubble


def tell(widget: Question | Bubble | ToolUse, shown: Shown) -> None:
    """What is known beside the text of a drawn message has changed."""
    if isinstance(widget, ToolUse):
        widget.tell(shown.call.state if shown.call else "done")
    elif isinstance(widget, Bubble):
        widget.tell(shown.signals, shown.versions, shown.because)
    else:
        widget.tell(shown.versions)


def describe(message: StoredMessage) -> str:
    """How a stored reply was made, in a few words."""
    parts = []
    if message.response_ids:
        parts.append(ngettext("{number} token", "{number} tokens", len(message.response_ids)))
    total = message.timings.get("total") or message.timings.get("total_s")
    if total:
        parts.append(f"{total:.1f} s")
    parts.append(_("adapter {id}", id=message.adapter_id) if message.adapter_id else _("base model"))
    return " · ".join(parts)
