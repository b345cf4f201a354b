"""What all rooms of an engine compute with: the model, its contexts, and the two locks around them.

Two locks, two meanings. `computing` is safety: whoever computes, loads or frees holds it, for one step (a token, or one
batch of prompt tokens). `turns` is order: a reply keeps its turn until it ends, and the judge waits. It must never know
what is computed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..errors import EngineError
from ..language import _
from ._native import NativeContext, NativeModel, Threads
from ._sampler import as_seed, fresh_seed
from ._stopping import StopFlag
from ._turns import Turns
from .base import Generation, Sampling

CHAT_BATCH = 256


class Closed(EngineError):
    """The engine was closed meanwhile."""

    def __init__(self) -> None:
        super().__init__("The model is no longer loaded: claw-local is closing. Start it again.")


class Machine:
    """A loaded model, and the contexts that are made over it.

    Attributes:
        limit: longest prompt plus reply, in tokens.
        trained: tokens of context the model was trained with.
        stop_judge: breaks off what the judge computes; set as soon as a reply waits.
        closed: nothing can be computed any more.
    """

    def __init__(self, model: NativeModel, threads: Threads, limit: int) -> None:
        self.model = model
        self.threads = threads
        self.limit = limit
        self.trained = model.trained_context or limit
        self.stop_judge = StopFlag()
        self.turns = Turns(hurry=self.stop_judge.set)
        self.closed = False
        self._lock = threading.Lock()
        self._vocabulary = threading.RLock()
        self._contexts: list[NativeContext] = []

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Hold the lock for one step. Raises EngineError if the engine is closed."""
        with self._lock:
            if self.closed:
                raise Closed
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep the vocabulary alive; does not wait for what computes. Raises EngineError if the engine is closed."""
        with self._vocabulary:
            if self.closed:
                raise Closed
            yield

    def new_context(
        self,
        room: int,
        *,
        batch: int,
        sequences: int = 1,
        outputs: int = 1,
        stop: StopFlag | None = None,
        fused: bool = False,
    ) -> NativeContext:
        """A context of so many cells; see `NativeContext`. Only while `computing`."""
        context = NativeContext(
            self.model,
            context=room,
            batch=max(batch, sequences),
            threads=self.threads,
            sequences=sequences,
            outputs=outputs,
            stop=stop,
            fused=fused,
        )
        self._contexts.append(context)
        return context

    def free_context(self, context: NativeContext) -> None:
        """Only while `computing`. After `close`, nothing is left to free."""
        if context in self._contexts:
            self._contexts.remove(context)
            context.close()

    def give_back(self, context: NativeContext) -> None:
        """The same, for whoever is not computing."""
        with self._lock:
            self.free_context(context)

    @property
    def may_be_larger(self) -> bool:
        """Whether the model was made for longer texts than fit here now."""
        return self.limit < self.trained or not self.model.trained_context

    def begin(self, prompt_ids: Sequence[int], sampling: Sampling, seed: int | None) -> Generation:
        """A reply of which nothing is written yet.

        Raises:
            EngineError: the engine is closed, or the prompt is empty, fills the whole context, or holds tokens that the
                model does not have.
        """
        if self.closed:
            raise Closed
        if not prompt_ids:
            raise EngineError(_("There is nothing to answer: the prompt is empty. Write a message first."))
        if len(prompt_ids) >= self.limit:
            raise EngineError(
                _(
                    "The prompt of {count} tokens fills the context of {limit}. Shorten the "
                    "chat, or set a larger model.context.",
                    count=len(prompt_ids),
                    limit=self.limit,
                )
                if self.may_be_larger
                else _(
                    "The prompt of {count} tokens fills the context of {limit}, and this model was made for no longer "
                    "texts. Shorten the chat, or use another model.",
                    count=len(prompt_ids),
                    limit=self.limit,
                )
            )
        if min(prompt_ids) < 0 or max(prompt_ids) >= self.model.n_vocab:
            raise EngineError(_("The prompt holds tokens that the model does not have. Were they another model's?"))
        return Generation(tuple(prompt_ids), sampling, seed=fresh_seed() if seed is None else as_seed(seed))

    def close(self) -> None:
        """Free everything: contexts, then the model with its adapters. Again: nothing."""
        with self._lock, self._vocabulary:
            if self.closed:
                return
            self.closed = True
            for context in self._contexts:
                context.close()
            self._contexts.clear()
            self.model.close()


def is_set(cancel: threading.Event | None) -> bool:
    return cancel is not None and cancel.is_set()
