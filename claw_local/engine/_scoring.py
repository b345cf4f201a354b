"""The logits of whole texts, and vectors of them. Replies go first. It must never know what they are for."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from ..errors import EngineError
from ._embedding import embed
from ._growing import GrowingContext
from ._kept import LEAST, chunks
from ._machine import CHAT_BATCH, Machine
from ._native import Adapters, NativeContext
from .base import Logits

SCORE_CONTEXT = 1024
SCORE_ROWS = 64
"""Positions whose logits are in memory at once while a text is scored."""


class Scoring:
    """A context for scoring, which grows with the texts; what one text begins with like the last is kept."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lock = threading.Lock()
        self._scored: tuple[NativeContext, tuple[int, ...]] | None = None
        least = min(SCORE_CONTEXT, machine.trained)
        self._context = GrowingContext(
            lambda room: machine.new_context(room, batch=CHAT_BATCH, outputs=SCORE_ROWS),
            machine.free_context,
            least=least,
            most=max(least, machine.limit),
            purpose="score",
            larger=machine.may_be_larger,
        )

    def logits(self, token_ids: Sequence[int], start: int, adapters: Adapters) -> Logits:
        """[T - start, V] raw logits; see `Engine.logits`.

        Raises:
            EngineError: T is longer than the model's context, or `start` is not inside.
        """
        machine, count = self._machine, len(token_ids)
        if not 0 <= start < count:
            raise EngineError(f"Logits from position {start} on were asked for, of a text of {count} tokens.")
        out = np.empty((count - start, machine.model.n_vocab), np.float32)
        # Batches of two tokens or more: they round alike, see `_kept.LEAST`.
        first = max(0, min(start, count - LEAST))
        first = 0 if first == 1 else first
        who = object()
        with self._lock:
            try:
                machine.turns.take(who)
                with machine.computing():
                    context = self._context.fit(count)
                    kept = self._keep(context, token_ids[:first], adapters)
                for begin, end in [*chunks(kept, first, CHAT_BATCH), *chunks(first, count, SCORE_ROWS)]:
                    machine.turns.give_way(who)
                    with machine.computing():
                        wanted = range(max(0, start - begin), end - begin)
                        context.decode(token_ids[begin:end], begin, 0, wanted)
                        for place in wanted:
                            out[begin + place - start] = context.logits(place)
                self._scored = (context, tuple(token_ids))
            finally:
                machine.turns.leave(who)
        return out

    def _keep(self, context: NativeContext, prefix: Sequence[int], adapters: Adapters) -> int:
        """Leave as much of `prefix` in the context as the text scored before began with; returns how much."""
        before, self._scored = self._scored, None  # Until the text is whole again, nothing is known of what is there.
        stale = context.apply(adapters)
        kept = 0
        if before is not None and before[0] is context and not stale:
            most = min(len(prefix), len(before[1]))
            kept = next((n for n in range(most) if prefix[n] != before[1][n]), most)
            kept = max(0, kept - (len(prefix) - kept == 1))  # What is left to compute is no batch of one.
        if kept == 0 or not context.remove(0, kept):
            context.clear()
            return 0
        return kept

    def embed(self, text: Sequence[int]) -> list[float]:
        """A text's vector. Raises EngineError: it is empty, or longer than the context."""
        machine = self._machine
        if not text or len(text) > machine.limit:
            raise EngineError(f"A text to embed has 1 to {machine.limit} tokens, not {len(text)}. Cut it up.")
        who = object()
        try:
            machine.turns.take(who)
            with machine.computing():
                return embed(machine.model, text, threads=machine.threads.now())
        finally:
            machine.turns.leave(who)
