"""Several replies at once: those who ask join and leave one running batch, each with its own sampling and adapters.

One thread computes. Every step is one batch: a token of each reply that is being written, and a piece of the prompts
that are being read, so that a long prompt holds nobody up. Replies under different adapters take turns step by step,
since llama.cpp applies adapters to a whole batch. It must never know about chats, the store or what is learned.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ._fair import FairQueue
from ._native import Adapters, NativeContext, NativeModel
from ._pace import Pace, share
from ._request import Request, current_client
from ._seats import Seats, common
from ._turns import Turns
from ._writing import Writing
from .base import Generation

SHARED = 16
"""So many tokens in common with a prompt that is being read are worth waiting for."""
GIVEN_UP_S = 2.0
"""Longest that who gives a reply up waits for its end, which comes with the next step."""
AHEAD = 32
"""Tokens that a reply must have room for before it begins."""


@dataclass(frozen=True)
class Ground:
    """What it stands on: an engine's model, its order of computing, and a context for this alone.

    Attributes:
        computing: held for each step; raises `closed` once the engine is closed.
        room: KV cells of the context; at least `limit`.
        limit: longest prompt plus reply, in tokens.
        most: most replies in a batch. The context has twice as many sequences: the others are kept for next turns.
    """

    model: NativeModel
    context: NativeContext
    turns: Turns
    computing: Callable[[], AbstractContextManager[None]]
    closed: type[Exception]
    room: int
    limit: int
    most: int


class Together:
    """Writes replies together. `enter` from any thread; `close` before the context is freed."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._seats = Seats(ground.context, seats=2 * ground.most, room=ground.room, keep=ground.room // 2)
        self._pace = Pace(ground.context.batch - ground.most)
        self._changed = threading.Condition()
        self._waiting: FairQueue[Request] = FairQueue()
        self._active: list[Request] = []
        self._served: dict[Adapters, int] = {}
        self._steps = 0
        self._holds_turn = False
        self._closed = False
        self._thread: threading.Thread | None = None

    # For those who ask

    @property
    def active(self) -> int:
        """Replies being written or read for now."""
        return len(self._active)

    @property
    def waiting(self) -> int:
        """Replies that have not begun."""
        with self._changed:
            return len(self._waiting)

    def enter(self, request: Request) -> Request:
        """Let a request wait for its place. The prompt must hold tokens of the vocabulary, and fewer than `limit`.

        Raises:
            EngineError: the engine is closed.
        """
        with self._changed:
            if self._closed:
                raise self._ground.closed
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="claw-together", daemon=True)
                self._thread.start()
            self._waiting.put(request.client, request)
            self._changed.notify()
        return request

    def stream(self, generation: Generation, adapters: Adapters, cancel: threading.Event | None) -> Iterator[str]:
        """A reply's text as it comes; it enters when the iterator is first read, and is given up with it."""
        client = current_client()
        return self._stream(Request(generation, adapters, client=client, cancel=cancel, on_piece=None, on_end=None))

    def _stream(self, request: Request) -> Iterator[str]:
        try:
            yield from self.enter(request)
        except self._ground.closed:
            request.end("cancelled")
        finally:
            request.cancel()
            request.ended(GIVEN_UP_S)

    def close(self) -> None:
        """End every reply as "cancelled", and stop computing. Returns when nothing touches the context any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    # The loop

    def is_set(self) -> bool:
        """Whether the loop has something better to do than to wait for its turn."""
        with self._changed:
            return self._closed or any(request.cancelled for request in (*self._active, *self._waiting))

    def _run(self) -> None:
        turns = self._ground.turns
        try:
            while self._await_work():
                self._let_go()
                self._let_in()
                if not self._active:
                    continue
                take = turns.pass_on if self._holds_turn else turns.begin
                self._holds_turn = take(self, self)
                if self._holds_turn and not self._closed:
                    self._step_or_fail()
        except self._ground.closed:
            pass
        finally:
            turns.leave(self)
            with self._changed:
                self._closed = True
                rest = [*self._active, *self._waiting]
            for request in rest:
                request.end("cancelled")

    def _await_work(self) -> bool:
        with self._changed:
            while not (self._closed or self._active or self._waiting):
                self._ground.turns.leave(self)
                self._holds_turn = False
                self._changed.wait()
            return not self._closed

    def _let_go(self) -> None:
        """Those who are not wanted any longer give their place back."""
        for request in [request for request in self._active if request.cancelled]:
            self._leave(request, "cancelled")
        with self._changed:
            gone = [request for request in self._waiting if request.cancelled]
            for request in gone:
                self._waiting.remove(request.client, request)
        for request in gone:
            request.end("cancelled")

    def _let_in(self) -> None:
        """Those who wait come in, as long as there are places and room; a client with far fewer places than another
        gets one of the other's."""
        while True:
            with self._changed:
                if not self._waiting:
                    return
                client, request = self._waiting.peek(self._places_of)
            if len(self._active) < self._ground.most and self._fits(request):
                with self._changed:
                    self._waiting.remove(client, request)
                self._join(request)
                continue
            rich = max((other.client for other in self._active), key=self._places_of, default=client)
            if self._places_of(rich) < self._places_of(client) + 2:
                return
            self._pause(max((other for other in self._active if other.client == rich), key=lambda other: other.joined))

    def _places_of(self, client: Hashable) -> int:
        return sum(request.client == client for request in self._active)

    def _fits(self, request: Request) -> bool:
        if not self._active:
            return True
        ids = request.ids
        coming = sum(other.left for other in self._active)
        need = len(ids) - self._seats.shareable(ids, request.adapters) + min(AHEAD, self._most_left(request))
        if request.needs_all_room:  # It had to make room once; let that not happen again and again.
            need += sum(self._most_left(other) for other in (request, *self._active))
        return need + coming <= self._seats.spare

    def _most_left(self, request: Request) -> int:
        """Most tokens that may still be drawn for it."""
        written = len(request.generation.response_ids)
        wished = request.generation.sampling.max_tokens - written
        return max(1, min(wished, self._ground.limit - len(request.generation.prompt_ids) - written))

    def _join(self, request: Request) -> None:
        ids = request.ids
        try:
            if request.writing is None:
                request.writing = Writing(
                    request.generation, self._ground.model, limit=self._ground.limit, started=request.started
                )
        except Exception as error:  # The shape it asked for, for one, cannot be kept to.
            request.end("cancelled", error)
            return
        request.seat = self._seats.take(ids, request.adapters)
        assert request.seat is not None
        self._steps += 1
        request.joined = self._steps
        have = len(request.seat.tokens)
        for other in self._active:
            if other.adapters == request.adapters and other.seat is not None and other.left > 1:
                shared = min(common(other.ids, ids), len(ids) - 2)
                if shared >= max(have, request.waits_until) + SHARED:
                    request.waits_for, request.waits_until = other, shared
        self._active.append(request)

    def _pause(self, request: Request) -> None:
        """Back to those who wait; what was computed is kept while there is room."""
        self._free(request)
        with self._changed:
            self._waiting.put(request.client, request, first=True)

    def _leave(self, request: Request, reason: str, error: Exception | None = None) -> None:
        self._free(request)
        request.end("cancelled" if reason == "cancelled" else "stop", error)

    def _free(self, request: Request) -> None:
        self._active.remove(request)
        for follower in self._active:
            if follower.waits_for is request:
                follower.waits_for = None
        request.waits_for, request.waits_until = None, 0
        if request.seat is not None and not self._closed:
            self._seats.leave(request.seat)
            request.seat = None

    # One step

    def _step_or_fail(self) -> None:
        """What nobody foresaw ends the replies that are being written, and never the thread that all others need."""
        try:
            self._step()
        except self._ground.closed:
            raise
        except Exception as error:
            for request in list(self._active):
                self._leave(request, "cancelled", error)
            self._seats.forget()

    def _step(self) -> None:
        parts = self._plan()
        if not parts:
            return
        adapters = parts[0][0].adapters
        tokens: list[int] = []
        positions: list[int] = []
        sequences: list[int] = []
        wanted: list[tuple[int, Request]] = []
        for request, new in parts:
            assert request.seat is not None
            start = len(request.seat.tokens)
            tokens += new
            positions += range(start, start + len(new))
            sequences += [request.seat.number] * len(new)
            if len(new) == request.left:
                wanted.append((len(tokens) - 1, request))
        pieces: list[tuple[Request, str]] = []
        failed: list[tuple[Request, Exception]] = []
        context = self._ground.context
        started = time.perf_counter()
        with self._ground.computing():
            try:
                context.apply(adapters)
                context.decode(tokens, positions, sequences, [place for place, _ in wanted])
            except Exception as error:
                self._failed([request for request, _ in parts], error)
                return
            computed_s = time.perf_counter() - started
            for request, new in parts:
                assert request.seat is not None
                self._seats.add(request.seat, new)
                request.suspect = False
                if not request.generation.response_ids:
                    request.generation.evaluated += len(new)
            for place, request in wanted:
                assert request.writing is not None
                try:
                    pieces.append((request, request.writing.accept(context.logits(place))))
                except Exception as error:
                    failed.append((request, error))
        self._pace.note(len(tokens), computed_s)
        for request, piece in pieces:
            request.say(piece)
            if request.writing is not None and request.writing.done:
                self._leave(request, "stop")
        for request, error in failed:
            self._leave(request, "cancelled", error)

    def _plan(self) -> list[tuple[Request, list[int]]]:
        """Whose tokens are computed next: replies under one set of adapters, those that waited longest."""
        self._steps += 1
        ready = [request for request in self._active if not self._must_wait(request)]
        suspects = [request for request in ready if request.suspect]
        group = suspects[:1] or ready
        adapters = min((request.adapters for request in group), key=lambda other: self._served.get(other, 0))
        group = [request for request in group if request.adapters == adapters]
        in_use = {request.adapters for request in self._active}
        self._served = {key: step for key, step in self._served.items() if key in in_use}
        self._served[adapters] = self._steps
        writing = [request for request in group if request.left == 1]
        reading = [request for request in group if request.left > 1]
        others_write = any(request.left == 1 for request in self._active)
        shares = share([request.left for request in reading], self._pace.room(others_write))
        counts = [(request, 1) for request in writing] + list(zip(reading, shares, strict=True))
        counts = [(request, count) for request, count in counts if count]
        if not self._find_room(sum(count for _, count in counts)):
            return []
        parts = []
        for request, count in counts:
            assert request.seat is not None
            start = len(request.seat.tokens)
            parts.append((request, request.ids[start : start + count]))
        return parts

    def _must_wait(self, request: Request) -> bool:
        """Whether another prompt is being read that begins like this one; what it has of it is taken over then."""
        if not request.waits_until:
            return False
        other = request.waits_for
        if other and other.seat and len(other.seat.tokens) < request.waits_until and not other.suspect:
            return True
        request.waits_for, request.waits_until = None, 0
        assert request.seat is not None
        self._seats.catch_up(request.seat, request.ids)
        return False

    def _find_room(self, cells: int) -> bool:
        """Room for a step: what is kept goes first; then who came last makes room, and comes back later."""
        if self._seats.make_room(cells):
            return True
        last = max(self._active, key=lambda request: request.joined)
        last.needs_all_room = True
        self._pause(last)
        self._seats.make_room(cells)
        return False

    def _failed(self, requests: list[Request], error: Exception) -> None:
        """A batch failed, and with it the whole cache is gone. One of several may be to blame: each is tried alone, and
        who fails alone has failed."""
        self._seats.forget()
        if len(requests) == 1:
            self._leave(requests[0], "cancelled", error)
            return
        for request in requests:
            request.suspect = True
