"""How long a chat is, and what of it is sent, where only a server knows the tokens. It must never know which server.

An estimate: the server has the last word on what fits.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import EngineError
from ..language import _
from .base import Message, Prompt

BYTES_PER_TOKEN = 3
"""Cautious: English has about four bytes to a token, most other languages between two and four."""
MESSAGE_TOKENS = 6
"""What a chat template writes around one message."""
_DROP_BLOCK = 4
"""Turns go in blocks of a quarter of the room: the beginning stays the same, so the server can keep its cache."""


def tokens_in(text: str) -> int:
    """About how many tokens a text has."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def fit(messages: Sequence[Message], room: int) -> Prompt:
    """The messages to send, about `room` tokens at most; the oldest turns give way, never the system message or the
    last message.

    Raises:
        EngineError: there are no messages.
    """
    if not messages:
        raise EngineError(_("There is nothing to answer: the chat has no messages. Write one first."))
    costs = [tokens_in(message.content) + MESSAGE_TOKENS for message in messages]
    excess = sum(costs) - room
    if excess <= 0:
        return Prompt((), messages=tuple(messages))
    block = max(1, room // _DROP_BLOCK)
    goal = -(-excess // block) * block
    first = 1 if messages[0].role == "system" else 0
    last = len(messages) - 1
    cuts = [n for n in range(first + 1, last + 1) if messages[n].role == "user" or n == last]
    cut = next((n for n in cuts if sum(costs[first:n]) >= goal), cuts[-1] if cuts else first)
    return Prompt((), dropped=cut - first, messages=(*messages[:first], *messages[cut:]))
