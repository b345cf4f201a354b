"""One sequence whose KV cache is kept between calls: only what is new is computed.

It must never know about chats or sampling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._native import Adapters, NativeContext, State, Stopped

LEAST = 2
"""Fewest tokens of one prompt batch. A batch of one takes other kernels and rounds differently; with two or more, the
same prompt gives the same bits however much of it was kept and however it was cut up."""


def chunks(start: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut [start, end) into pieces of at most `size` with no piece of one, unless the whole is one."""
    while start < end:
        stop = min(start + size, end)
        if end - stop == 1 and stop - start > LEAST:
            stop -= 1
        yield start, stop
        start = stop


class KeptSequence:
    """The tokens in sequence 0 of a context, and how to get from them to others.

    Attributes:
        user: who fed it last; anyone else has to feed it anew before it appends.
    """

    def __init__(self, context: NativeContext) -> None:
        self.context = context
        self.user: object = None
        self._tokens: list[int] = []

    def feed(self, token_ids: Sequence[int], adapters: Adapters, user: object) -> Iterator[int]:
        """Make the sequence hold exactly `token_ids`, one batch for each step; yields the tokens computed in it.

        At least the last two tokens are computed. After the last step, logits place -1 predicts what follows.

        Raises:
            Stopped: the context's flag was set; feed again, and it goes on from what was computed.
        """
        self.user = user
        if self.context.apply(adapters):
            self.forget()
        kept = self._common(token_ids)
        if not self.context.remove(0, kept):
            self.forget()
            kept = 0
        del self._tokens[kept:]
        for start, stop in chunks(kept, len(token_ids), self.context.batch):
            self._decode(token_ids[start:stop], last=stop == len(token_ids))
            yield stop - start

    def append(self, token: int) -> None:
        """Compute one more token."""
        self._decode([token], last=True)

    def save(self) -> tuple[list[int], Adapters, State] | None:
        """What it holds: tokens, adapters and a copy of the KV cache. None: nothing, or it cannot be copied."""
        state = self.context.save(0) if self._tokens else None
        return None if state is None else (self._tokens.copy(), self.context.applied, state)

    def put_back(self, tokens: Sequence[int], adapters: Adapters, state: State) -> None:
        """Hold what another one saved, of the same model; nothing, where there is no place for it."""
        self.user = None
        self.context.apply(adapters)
        self.forget()
        if self.context.restore(0, state):
            self._tokens.extend(tokens)

    def forget(self) -> None:
        self.context.clear()
        self._tokens.clear()

    def _common(self, token_ids: Sequence[int]) -> int:
        most = max(0, min(len(self._tokens), len(token_ids) - LEAST))
        for place in range(most):
            if self._tokens[place] != token_ids[place]:
                return place
        return most

    def _decode(self, token_ids: Sequence[int], *, last: bool) -> None:
        start = len(self._tokens)
        try:
            self.context.decode(token_ids, start, 0, [len(token_ids) - 1] if last else [])
        except Stopped:
            if not self.context.remove(0, start):
                self.forget()
            raise
        except BaseException:
            self.forget()
            raise
        self._tokens.extend(token_ids)
