"""Replies one after another, on a context whose KV cache is kept from turn to turn. It must never know what is said."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from ._kept import KeptSequence
from ._machine import CHAT_BATCH, Closed, Machine, is_set
from ._native import Adapters
from ._writing import Writing
from .base import Generation


class Alone:
    """Writes one reply at a time. Make one while `machine.computing`. `chat`: the sequence whose KV cache is kept."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.chat = KeptSequence(machine.new_context(machine.limit, batch=CHAT_BATCH))

    def stream(
        self, generation: Generation, adapters: Adapters, cancel: threading.Event | None, started: float
    ) -> Iterator[str]:
        """A reply's text as it comes. Nothing is computed before it is read; given up, it ends as "cancelled"."""
        machine, chat, turns = self._machine, self.chat, self._machine.turns
        writing = Writing(generation, machine.model, limit=machine.limit, started=started)
        try:
            fed = turns.take(writing, cancel, urgent=True) and self._feed(writing, adapters, cancel)
            while fed:
                with machine.computing():
                    piece = writing.accept(chat.context.logits(-1))
                if piece:
                    turns.rest(writing)
                    yield piece
                if writing.done:
                    return
                if is_set(cancel) or not turns.take(writing, cancel, urgent=True):
                    break
                if chat.user is writing:
                    with machine.computing():
                        chat.append(generation.response_ids[-1])
                else:  # Another reply used the chat's KV cache while this one was not read.
                    fed = self._feed(writing, adapters, cancel)
            if rest := writing.end("cancelled"):
                yield rest
        except Closed:
            return
        finally:
            writing.end("cancelled")
            turns.leave(writing)

    def _feed(self, writing: Writing, adapters: Adapters, cancel: threading.Event | None) -> bool:
        """Bring the chat's KV cache to where `writing` stands. False if it was cancelled."""
        generation = writing.generation
        again = bool(generation.response_ids)
        steps = self.chat.feed([*generation.prompt_ids, *generation.response_ids], adapters, writing)
        while True:
            if is_set(cancel):
                return False
            with self._machine.computing():
                computed = next(steps, None)
            if computed is None:
                return True
            if not again:
                generation.evaluated += computed
