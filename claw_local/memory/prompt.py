"""From a stored branch to the messages of a prompt. It must never know which model reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from ..engine.base import Message
from ..store import StoredMessage
from .fast import with_hints


def prompt_messages(
    system: str, branch: Sequence[StoredMessage], hints: Sequence[str], *, model_sha256: str
) -> list[Message]:
    """The branch as the engine takes it, with the hints at the end of the person's last message.

    What this model (its file's hash) wrote goes in as the very tokens it wrote; what another one wrote, as text.
    """
    messages = [Message("system", system)] if system else []
    answered = list(_without_unanswered(branch))
    # After a tool's result the person's words stand further up. What a tool returned is never mixed with wishes.
    last = max((place for place, stored in enumerate(answered) if stored.role == "user"), default=-1)
    for place, stored in enumerate(answered):
        if stored.role == "assistant":
            messages.append(Message("assistant", stored.content, token_ids=written(stored, model_sha256)))
        elif stored.role in ("user", "tool"):
            role: Literal["user", "tool"] = "user" if stored.role == "user" else "tool"
            messages.append(Message(role, with_hints(stored.content, hints) if place == last else stored.content))
    return messages


def _without_unanswered(branch: Sequence[StoredMessage]) -> Iterator[StoredMessage]:
    """Leave out replies that failed before their first word, and the questions they left unanswered."""
    for place, stored in enumerate(branch):
        following = branch[place + 1] if place + 1 < len(branch) else None
        if not any(m is not None and m.role == "assistant" and not m.content for m in (stored, following)):
            yield stored


def written(stored: StoredMessage, model_sha256: str) -> tuple[int, ...]:
    """The tokens of a reply, if that model wrote all of its text."""
    # A reply that a stop string cut short holds more tokens than text: it goes in as text.
    mine = stored.model_sha256 == model_sha256 and not stored.sampling.get("stop")
    return stored.response_ids if mine else ()
