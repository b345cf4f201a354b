"""What a program asks and what it gets, in no API's own form: each API module translates to these and back.

It must never know about HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from ..talking.asked import (
    ANY_OBJECT,
    Asked,
    Began,
    Caller,
    CallPiece,
    Drawn,
    Embedded,
    Ended,
    Finish,
    Offered,
    Piece,
    Role,
    Said,
    Session,
    TokenLogprob,
    Tool,
    ToolCall,
    Turn,
)

__all__ = [
    "ANY_OBJECT",
    "Answering",
    "Asked",
    "Began",
    "CallPiece",
    "Caller",
    "Drawn",
    "Embedded",
    "Ended",
    "Finish",
    "Offered",
    "Piece",
    "Role",
    "Said",
    "Service",
    "Session",
    "TokenLogprob",
    "Tool",
    "ToolCall",
    "Turn",
]

Answering = AsyncIterator[Piece | Ended]
"""Closing it (`aclose`), or cancelling the task that reads it, gives the place free within a token."""


class Service(Protocol):
    """All that an API module needs. Every method may raise a `ServeError`."""

    def answer(self, asked: Asked) -> Answering:
        """Answer. Nothing happens before the first step; errors come then, or in the middle.

        The model named may be the base's or an adapter's name as `models` lists them, or "" and "default" (what is in
        use).

        Raises:
            Missing: no such model. Invalid: it cannot be answered as it is. Busy: no place is free.
        """
        ...

    async def models(self) -> Sequence[Offered]:
        """The base and each adapter that can answer, what is in use first."""
        ...

    async def count(self, asked: Asked) -> int:
        """How many tokens the prompt of this request would have."""
        ...

    async def embed(self, caller: Caller, model: str, texts: Sequence[str | Sequence[int]]) -> Embedded:
        """One vector a text (or a text in tokens)."""
        ...

    async def detokenize(self, token_ids: Sequence[int]) -> str: ...
