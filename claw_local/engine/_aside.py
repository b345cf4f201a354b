"""What the judge computes: beside the chat, on a context of its own, and broken off as soon as a reply waits.

It must never know what is judged.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from ..errors import EngineError
from ..language import _
from ._growing import GrowingContext
from ._kept import KeptSequence
from ._machine import Machine, is_set
from ._native import Adapters, Stopped
from ._writing import Writing
from .base import Cancelled, Generation, Logits, Sampling

JUDGE_BATCH = 32
"""The judge computes in small batches, so that it can be cancelled soon. It gives way to the chat within a batch."""
JUDGE_CONTEXT = 2048


class Aside:
    """The judge's context. `adapters`: the LoRAs it is on."""

    def __init__(self, machine: Machine) -> None:
        self.adapters: Adapters = ()
        self._machine = machine
        self._lock = threading.Lock()
        self._sequence: KeptSequence | None = None
        least = min(JUDGE_CONTEXT, machine.trained)
        self._context = GrowingContext(
            lambda room: machine.new_context(room, batch=JUDGE_BATCH, stop=machine.stop_judge),
            machine.free_context,
            least=least,
            most=max(least, machine.limit),
            purpose="judge",
            larger=machine.may_be_larger,
        )

    def next_logits(self, token_ids: Sequence[int], cancel: threading.Event | None) -> Logits:
        """[V] raw logits after these tokens; see `Engine.next_logits`.

        Raises:
            Cancelled: `cancel` was set before it was done.
            EngineError: there are no tokens, or more than the model's context holds.
        """
        if not token_ids:
            raise EngineError(_("There is nothing to judge: the text is empty."))
        machine, turns, who = self._machine, self._machine.turns, object()
        while not self._lock.acquire(timeout=0.05):
            if is_set(cancel):
                raise Cancelled
        try:
            if not turns.take(who, cancel):
                raise Cancelled
            with machine.computing():
                judge = self._fit(len(token_ids))
            steps = judge.feed(token_ids, self.adapters, who)
            while True:
                machine.stop_judge.clear()  # Before it gives way: a reply that begins to wait after that sets it again.
                if is_set(cancel) or not turns.give_way(who, cancel):
                    raise Cancelled
                try:
                    with machine.computing():
                        if next(steps, None) is None:
                            return judge.context.logits(-1).copy()
                except Stopped:
                    steps = judge.feed(token_ids, self.adapters, who)
        finally:
            turns.leave(who)
            self._lock.release()

    def generate(self, prompt_ids: Sequence[int], sampling: Sampling, cancel: threading.Event | None) -> Generation:
        """Write a whole text; see `Engine.generate_aside`.

        Raises:
            Cancelled: `cancel` was set before it was done.
            EngineError: the prompt is empty or fills the whole context.
        """
        machine = self._machine
        generation = machine.begin(prompt_ids, sampling, sampling.seed)
        writing = Writing(generation, machine.model, limit=machine.limit, started=time.perf_counter())
        try:
            while not writing.done:
                logits = self.next_logits([*generation.prompt_ids, *generation.response_ids], cancel)
                with machine.computing():
                    writing.accept(logits)
        finally:
            writing.end("cancelled")
        return generation

    def _fit(self, count: int) -> KeptSequence:
        context = self._context.fit(count)
        if self._sequence is None or self._sequence.context is not context:
            self._sequence = KeptSequence(context)
        return self._sequence
