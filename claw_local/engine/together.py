"""Several replies at once: those who ask join and leave one running batch, each with its own sampling and adapters.

One thread computes. Every step is one batch: a token of each reply that is being written, and a piece of the prompts
that are being read, so that a long prompt holds nobody up. Replies under different adapters take turns step by step,
since llama.cpp applies adapters to a whole batch. It must never know about chats, the store or what is learned.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ..errors import EngineError
from ._company import Company, Part
from ._fair import FairQueue
from ._machine import CHAT_BATCH, Closed, Machine
from ._native import Adapters, NativeContext, NativeModel
from ._pace import Pace
from ._request import Request, asked_by, current_client
from ._seats import Seats
from ._turns import Turns
from ._writing import Writing
from .base import Generation

__all__ = ["Ground", "Request", "Together", "asked_by", "make_ground"]

GIVEN_UP_S = 2.0
"""Longest that who gives a reply up waits for its end, which comes with the next step."""


@dataclass(frozen=True)
class Ground:
    """What it stands on: an engine's model, its order of computing, and a context for this alone.

    Attributes:
        computing: held for each step; raises `closed` once the engine is closed.
        room: KV cells of the context; at least `limit`.
        limit: longest prompt plus reply, in tokens.
        most: most replies in a batch; the context has as many sequences.
    """

    model: NativeModel
    context: NativeContext
    turns: Turns
    computing: Callable[[], AbstractContextManager[None]]
    closed: type[Exception]
    room: int
    limit: int
    most: int


def make_ground(machine: Machine, most: int, *, roomy: bool) -> Ground:
    """Room for two chats of the longest kind, or for one where there is not enough memory. Beside it, half as much is
    kept for next turns. Only while `machine.computing`. Raises EngineError: there is not enough memory for one."""

    def make(room: int) -> NativeContext:
        # Without the fused kernel, each token would be compared with the cells of all, not only with its own.
        return machine.new_context(room, batch=CHAT_BATCH + most, sequences=most, outputs=most, fused=True)

    room = 2 * machine.limit if roomy else machine.limit
    try:
        context = make(room)
    except EngineError:
        room = machine.limit
        context = make(room)
    return Ground(machine.model, context, machine.turns, machine.computing, Closed, room, machine.limit, most)


class Together:
    """Writes replies together. `enter` from any thread; `close` before the context is freed."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.seats = Seats(ground.context, seats=ground.most, room=ground.room, keep=ground.room // 2)
        self._pace = Pace(ground.context.batch - ground.most)
        self._company = Company(self.seats, self._pace, limit=ground.limit, most=ground.most)
        self._waiting: FairQueue[Request] = FairQueue()
        self._changed = threading.Condition()
        self._holds_turn = False
        self._closed = False
        self._thread: threading.Thread | None = None

    # For those who ask

    @property
    def active(self) -> int:
        """Replies that are being read for or written."""
        return len(self._company.members)

    @property
    def waiting(self) -> int:
        """Replies that have no place yet."""
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
        return self._stream(Request(generation, adapters, client=current_client(), cancel=cancel))

    def _stream(self, request: Request) -> Iterator[str]:
        try:
            yield from self.enter(request)
        except self._ground.closed:
            request.end("cancelled")
        finally:
            request.cancel()
            request.ended(GIVEN_UP_S)

    def close(self) -> None:
        """End every reply as "cancelled", and stop computing. Returns when nothing touches the context any longer; not
        to be called from `on_piece` or `on_end`."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    # The loop

    def is_set(self) -> bool:
        """Whether the loop has something better to do than to wait for its turn."""
        with self._changed:
            return self._closed or any(request.cancelled for request in (*self._company.members, *self._waiting))

    def _run(self) -> None:
        turns = self._ground.turns
        try:
            while self._await_work():
                self._let_go()
                self._let_in()
                if not self._company.members:
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
                rest = [*self._company.members, *self._waiting]
            for request in rest:
                request.end("cancelled")

    def _await_work(self) -> bool:
        with self._changed:
            while not (self._closed or self._company.members or self._waiting):
                self._ground.turns.leave(self)
                self._holds_turn = False
                self._changed.wait()
            return not self._closed

    def _let_go(self) -> None:
        """Those who are not wanted any longer give their place back."""
        for request in [request for request in self._company.members if request.cancelled]:
            self._end(request)
        with self._changed:
            gone = [request for request in self._waiting if request.cancelled]
            for request in gone:
                self._waiting.remove(request.client, request)
        for request in gone:
            request.end("cancelled")

    def _let_in(self) -> None:
        """Those who wait come in while there is a place; a client with far fewer places than another gets one of the
        other's."""
        company = self._company
        while True:
            with self._changed:
                if not self._waiting:
                    return
                client, request = self._waiting.peek(company.places_of)
                fits = company.fits(request)
                if fits:
                    self._waiting.remove(client, request)
            if fits:
                self._begin(request)
            elif (rich := company.to_make_way_for(client)) is not None:
                self._pause(rich)
            else:
                return

    def _begin(self, request: Request) -> None:
        try:
            if request.writing is None:
                request.writing = Writing(
                    request.generation, self._ground.model, limit=self._ground.limit, started=request.started
                )
        except Exception as error:  # The shape it asked for, for one, cannot be kept to.
            request.end("cancelled", error)
        else:
            self._company.join(request)

    def _pause(self, request: Request) -> None:
        """Back to those who wait, before all others of its client."""
        self._company.part(request)
        with self._changed:
            self._waiting.put(request.client, request, first=True)

    def _end(self, request: Request, error: Exception | None = None) -> None:
        """A reply that is written to its end knows why it ended; any other one ends as "cancelled"."""
        self._company.part(request)
        request.end("cancelled", error)

    # One step

    def _step_or_fail(self) -> None:
        """What nobody foresaw ends the replies that are being written, and never the thread that all others need."""
        try:
            self._step()
        except self._ground.closed:
            raise
        except Exception as error:
            members = list(self._company.members)
            for request in members:
                self._end(request, error)

    def _step(self) -> None:
        parts = self._company.plan(self._company.next_group())
        if (last := self._company.find_room(parts)) is not None:
            self._pause(last)
            return
        pieces: list[tuple[Request, str]] = []
        failed: list[tuple[Request, Exception]] = []
        started = time.perf_counter()
        with self._ground.computing():
            try:
                drawing = self._decode(parts)
            except Exception as error:
                if (to_blame := self._company.lost(parts)) is not None:
                    self._end(to_blame, error)
                return
            computed_s = time.perf_counter() - started
            self._company.computed(parts)
            for place, request, writing in drawing:
                try:
                    pieces.append((request, writing.accept(self._ground.context.logits(place))))
                except Exception as error:
                    failed.append((request, error))
        self._pace.note(sum(len(new) for _, new in parts), computed_s)
        for request, piece in pieces:
            request.say(piece)
            if request.writing is not None and request.writing.done:
                self._end(request)
        for request, reason in failed:
            self._end(request, reason)

    def _decode(self, parts: list[Part]) -> list[tuple[int, Request, Writing]]:
        """Compute one batch. Returns who draws a token from which place of it."""
        tokens: list[int] = []
        positions: list[int] = []
        sequences: list[int] = []
        drawing: list[tuple[int, Request, Writing]] = []
        for request, new in parts:
            assert request.seat is not None and request.writing is not None
            tokens += new
            positions += range(request.computed, request.computed + len(new))
            sequences += [request.seat.number] * len(new)
            if len(new) == request.left:
                drawing.append((len(tokens) - 1, request, request.writing))
        context = self._ground.context
        context.apply(parts[0][0].adapters)
        context.decode(tokens, positions, sequences, [place for place, _, _ in drawing])
        return drawing
