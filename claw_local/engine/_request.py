"""One reply that is written together with others, as its client sees it: text as it comes, and how it ended.

It must never know how replies are decoded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from queue import SimpleQueue

from ._native import Adapters
from ._seats import Seat
from ._turns import Flag
from ._writing import Writing
from .base import FinishReason, Generation

_client: ContextVar[Hashable] = ContextVar("client", default="")


@contextmanager
def asked_by(client: Hashable) -> Iterator[None]:
    """While inside, `generate` of an engine that decodes together counts its replies to this client, so that one who
    asks much keeps nobody waiting."""
    before = _client.set(client)
    try:
        yield
    finally:
        _client.reset(before)


def current_client() -> Hashable:
    return _client.get()


class Request:
    """A reply that was asked for. Iterate over it for its text, or give `on_piece` and `wait`.

    Attributes:
        generation: the record being filled; whole once `done`.
        client: who asked.
        error: what ended it, if it failed.
    """

    def __init__(
        self,
        generation: Generation,
        adapters: Adapters,
        *,
        client: Hashable = "",
        cancel: Flag | None = None,
        on_piece: Callable[[str], None] | None = None,
        on_end: Callable[[Request], None] | None = None,
    ) -> None:
        self.generation = generation
        self.client = client
        self.error: Exception | None = None
        self.started = time.perf_counter()
        self._cancel = cancel
        self._given_up = threading.Event()
        self._pieces: SimpleQueue[str | None] = SimpleQueue()
        self._on_piece = on_piece or self._pieces.put
        self._on_end = on_end
        self._done = threading.Event()
        # What the loop that writes it knows of it; nobody else looks.
        self.adapters = adapters
        self.writing: Writing | None = None
        self.seat: Seat | None = None
        self.waits_for: Request | None = None
        self.waits_until = 0
        self.needs_all_room = False
        self.suspect, self.suspect_until = False, 0

    @property
    def done(self) -> bool:
        return self._done.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether it is not wanted any longer."""
        return self._given_up.is_set() or (self._cancel is not None and self._cancel.is_set())

    def cancel(self) -> None:
        """Give it up, from any thread: its place is free within one token."""
        self._given_up.set()

    def ended(self, timeout_s: float) -> bool:
        """Whether it is over within this time, however it ended."""
        return self._done.wait(timeout_s)

    def wait(self, timeout_s: float | None = None) -> Generation:
        """The whole reply.

        Raises:
            TimeoutError: it is not done. EngineError and others: what ended it.
        """
        if not self._done.wait(timeout_s):
            raise TimeoutError("the reply is still being written")
        if self.error is not None:
            raise self.error
        return self.generation

    def __iter__(self) -> Iterator[str]:
        """The text as it comes, where no `on_piece` was given. Raises what ended it."""
        while (piece := self._pieces.get()) is not None:
            yield piece
        self._pieces.put(None)  # Whoever iterates again is at the end, too.
        if self.error is not None:
            raise self.error

    # For the loop that writes it

    @property
    def ids(self) -> list[int]:
        """All tokens so far: the prompt's, then the reply's."""
        return [*self.generation.prompt_ids, *self.generation.response_ids]

    @property
    def left(self) -> int:
        """Tokens not computed yet; with one, the next token can be drawn after the next batch."""
        return len(self.generation.prompt_ids) + len(self.generation.response_ids) - self.computed

    @property
    def computed(self) -> int:
        """Tokens whose KV is there."""
        return 0 if self.seat is None else len(self.seat.tokens)

    def say(self, piece: str) -> None:
        if piece:
            try:
                self._on_piece(piece)
            except Exception:  # Who listens is broken: that ends this reply, and no other.
                self._given_up.set()

    def end(self, reason: FinishReason, error: Exception | None = None) -> None:
        """It is over. Only the first call counts."""
        if self.done:
            return
        self.error = error
        if self.writing is not None:
            self.say(self.writing.end(reason))
            self.writing = None  # It is large, and whoever asked may keep the request.
        else:
            self.generation.finish_reason = reason
            self.generation.total_s = time.perf_counter() - self.started
        self._done.set()
        self._pieces.put(None)
        if self._on_end is not None:
            try:
                self._on_end(self)
            except Exception:  # As above.
                pass
