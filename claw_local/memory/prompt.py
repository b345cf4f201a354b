"""From a stored branch to the messages of a prompt. It must never know which model reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from ..engine.base import Message
from ..store import StoredMessage
from .fast import with_hints


def prompt_messages(
    system: str, branch: Sequence[StoredMessage], hints: Sequence[str], *, model_sha256: str, in_words: bool = False
) -> list[Message]:
    """The branch as the engine takes it, with the hints where `put_hints` puts them.

    What this model (its file's hash) wrote goes in as the very tokens it wrote; what another one wrote, as text.
    """
    messages = [Message("system", system)] if system else []
    for stored in _without_unanswered(branch):
        if stored.role == "assistant":
            messages.append(Message("assistant", stored.content, token_ids=written(stored, model_sha256)))
        elif stored.role in ("user", "tool"):
            role: Literal["user", "tool"] = "user" if stored.role == "user" else "tool"
            messages.append(Message(role, stored.content))
    put_hints(messages, hints, in_words=in_words)
    return messages


def put_hints(messages: list[Message], hints: Sequence[str], *, in_words: bool) -> None:
    """Wishes stand at the end of the person's last message; what a tool returned is never mixed with them.

    Where the model is told in words what a tool returned (`in_words`), that comes in a message of the user's: then they
    stand behind it and its marks, as the last thing said. Further up, before the call, a small model overlooks them.
    """
    if not hints:
        return
    if in_words and messages and messages[-1].role == "tool":
        messages.append(Message("user", with_hints("", hints).strip()))
        return
    last = max((place for place, message in enumerate(messages) if message.role == "user"), default=-1)
    if last >= 0:
        messages[last] = replace(messages[last], content=with_hints(messages[last].content, hints))


def _without_unanswered(branch: Sequence[StoredMessage]) -> Iterator[StoredMessage]:
    """Leave out replies that failed before their first word, and the questions they left unanswered."""
    for place, stored in enumerate(branch):
        following = branch[place + 1] if place + 1 < len(branch) else None
        if not any(m is not None and m.role == "assistant" and not m.content for m in (stored, following)):
            yield stored


def written(stored: StoredMessage, model_sha256: str) -> tuple[int, ...]:
    """The tokens of a reply, if that model wrote all of its text."""
    # A reply that a stop string cut short, or whose echoes were cut, holds more tokens than text: it goes in as text.
    cut = stored.sampling.get("stop") or stored.sampling.get("cut")
    mine = stored.model_sha256 == model_sha256 and not cut
    return stored.response_ids if mine else ()
