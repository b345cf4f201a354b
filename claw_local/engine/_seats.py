"""The sequences of one context that many replies share: who sits where, what each one's KV cache holds, what they have
in common, and what is kept for a chat's next turn.

A KV cell can belong to several sequences. What is kept stands outside the context: every step computes with all cells
that hold something, so keeping it inside would slow down everyone else. It must never know how tokens are drawn, or
whose turn it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from ._kept import LEAST
from ._native import Adapters, NativeContext, State
from .prefixes import common

WORTH_IT = 16
"""Fewest tokens that are worth being kept, or being fetched."""
MOST_WASTE = 4
"""What is fetched may be so many times as long as what is needed of it."""


class Seat:
    """One sequence of the context.

    Attributes:
        tokens: what its KV cache holds, from position 0 on; nothing if nobody sits here.
        cells: a number for each token's KV cell; sequences that share a cell have the same number there.
        adapters: what they were computed with.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.tokens: list[int] = []
        self.cells: list[int] = []
        self.adapters: Adapters = ()
        self.taken = False


@dataclass
class _Kept:
    tokens: list[int]
    adapters: Adapters
    state: State


class Seats:
    """All sequences of a context.

    Args:
        seats: how many sequences the context has.
        room: how many KV cells it has.
        keep: most tokens that are kept for later.
    """

    def __init__(self, context: NativeContext, *, seats: int, room: int, keep: int) -> None:
        self._context = context
        self._room = room
        self._keep = keep
        self._seats = [Seat(number) for number in range(seats)]
        self._kept: list[_Kept] = []  # The oldest first.
        self._holders: dict[int, int] = {}  # How many seats share a cell, by its number.
        self._numbers = count()

    @property
    def free(self) -> int:
        """KV cells that hold nothing."""
        return self._room - len(self._holders)

    @property
    def kept(self) -> int:
        """Tokens that are kept for later."""
        return sum(len(kept.tokens) for kept in self._kept)

    def take(self, token_ids: list[int], adapters: Adapters) -> Seat:
        """A seat for a reply after `token_ids`, while any is free. What another seat has of them, or what is kept of
        them, is in it already, all but the last two tokens."""
        if not self._holders:
            self._context.clear()  # From the first cell on: then a reply alone comes out the same every time.
        seat = next(seat for seat in self._seats if not seat.taken)
        seat.adapters = adapters
        source, shared = self._likest(token_ids, seat)
        kept, fetched = self._likest_kept(token_ids, adapters)
        if kept is not None and fetched >= shared + WORTH_IT and self._fetch(kept, seat, fetched):
            pass
        elif source is not None:
            self._copy(source, seat, shared)
        seat.taken = True
        return seat

    def shareable(self, token_ids: list[int], adapters: Adapters) -> int:
        """How many of these tokens need no cell of their own, since a reply under way holds them."""
        seats = [seat for seat in self._seats if seat.taken and seat.adapters == adapters]
        return max((common(seat.tokens, token_ids) for seat in seats), default=0)

    def catch_up(self, seat: Seat, token_ids: list[int]) -> None:
        """Take over from another seat what it has computed of `token_ids` meanwhile."""
        source, shared = self._likest(token_ids, seat)
        if source is not None and shared > len(seat.tokens):
            self._copy(source, seat, shared)

    def leave(self, seat: Seat) -> None:
        """Nobody sits here any longer. What was computed is kept for later, the oldest making room for it."""
        seat.taken = False
        tokens = seat.tokens.copy()
        if WORTH_IT <= len(tokens) <= self._keep and (state := self._context.save(seat.number)) is not None:
            self._kept = [kept for kept in self._kept if not self._is_in(kept, tokens, seat.adapters)]
            while self.kept + len(tokens) > self._keep:
                del self._kept[0]
            self._kept.append(_Kept(tokens, seat.adapters, state))
        self._cut(seat, 0)

    def add(self, seat: Seat, token_ids: Sequence[int]) -> None:
        """Note tokens that were computed at the end of a seat."""
        cells = [next(self._numbers) for _ in token_ids]
        seat.tokens.extend(token_ids)
        seat.cells.extend(cells)
        self._holders.update((cell, 1) for cell in cells)

    def save(self) -> list[tuple[list[int], Adapters, State]]:
        """What is kept for later, the oldest first: tokens, adapters and a copy of the KV cache."""
        return [(kept.tokens, kept.adapters, kept.state) for kept in self._kept]

    def put_back(self, tokens: Sequence[int], adapters: Adapters, state: State) -> None:
        """Keep for later what another one of the same model has saved."""
        if len(tokens) + self.kept <= self._keep:
            self._kept.append(_Kept(list(tokens), adapters, state))

    def forget(self) -> None:
        """Note that the whole cache was lost. Who sits stays seated; what is kept outside of it stays kept."""
        self._context.clear()
        for seat in self._seats:
            seat.tokens.clear()
            seat.cells.clear()
        self._holders.clear()

    @staticmethod
    def _is_in(kept: _Kept, tokens: list[int], adapters: Adapters) -> bool:
        return kept.adapters == adapters and common(kept.tokens, tokens) == len(kept.tokens)

    def _likest(self, token_ids: list[int], besides: Seat) -> tuple[Seat | None, int]:
        most = len(token_ids) - LEAST
        found, shared = None, 0
        for seat in self._seats:
            if seat.taken and seat is not besides and seat.adapters == besides.adapters:
                length = min(common(seat.tokens, token_ids), most)
                if length > shared:
                    found, shared = seat, length
        return found, shared

    def _likest_kept(self, token_ids: list[int], adapters: Adapters) -> tuple[_Kept | None, int]:
        most = len(token_ids) - LEAST
        found, shared = None, 0
        for kept in self._kept:
            if kept.adapters == adapters:
                length = min(common(kept.tokens, token_ids), most)
                if length > shared and length * MOST_WASTE >= len(kept.tokens) and len(kept.tokens) <= self.free:
                    found, shared = kept, length
        return found, shared

    def _fetch(self, kept: _Kept, seat: Seat, length: int) -> bool:
        """Put what is kept into a seat again; False if llama.cpp finds no place for it."""
        if not self._context.restore(seat.number, kept.state):
            return False
        self._kept.remove(kept)
        self._kept.append(kept)
        self.add(seat, kept.tokens)
        self._cut(seat, length)
        return True

    def _copy(self, source: Seat, target: Seat, length: int) -> None:
        self._cut(target, 0)
        self._context.copy(source.number, target.number)
        target.tokens = source.tokens.copy()
        target.cells = source.cells.copy()
        for cell in target.cells:
            self._holders[cell] += 1
        self._cut(target, length)

    def _cut(self, seat: Seat, length: int) -> None:
        """Keep the first tokens of a seat; none at all where this kind of model cannot forget a part."""
        if length < len(seat.tokens) and not self._context.remove(seat.number, length):
            self._context.remove(seat.number, 0)
            length = 0
        for cell in seat.cells[length:]:
            self._holders[cell] -= 1
            if not self._holders[cell]:
                del self._holders[cell]
        del seat.tokens[length:]
        del seat.cells[length:]
