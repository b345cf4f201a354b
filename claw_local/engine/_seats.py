"""The sequences of one context that many replies share: who sits where, what is in each one's KV cache, what they have
in common, and what is kept for a chat's next turn.

A KV cell can belong to several sequences. It must never know how tokens are drawn, or whose turn it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ._kept import LEAST
from ._native import Adapters, NativeContext


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class Seat:
    """One sequence of the context.

    Attributes:
        tokens: what its KV cache holds, from position 0 on.
        cells: a number for each token's KV cell; sequences that share a cell have the same number there.
        adapters: what they were computed with.
        taken: a reply is being written here; otherwise its tokens are kept for later.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.tokens: list[int] = []
        self.cells: list[int] = []
        self.adapters: Adapters = ()
        self.taken = False
        self.used = 0


class Seats:
    """All sequences of a context.

    Args:
        seats: how many sequences the context has.
        room: how many KV cells it has.
        keep: most tokens that are kept in seats nobody sits in.
    """

    def __init__(self, context: NativeContext, *, seats: int, room: int, keep: int) -> None:
        self._context = context
        self._room = room
        self._keep = keep
        self._seats = [Seat(number) for number in range(seats)]
        self._holders: dict[int, int] = {}  # How many seats share a cell, by its number.
        self._numbers = count()
        self._clock = count(1)

    @property
    def free(self) -> int:
        """KV cells that hold nothing."""
        return self._room - len(self._holders)

    @property
    def spare(self) -> int:
        """KV cells that hold nothing, or only what is kept."""
        taken = (seat.cells for seat in self._seats if seat.taken)
        return self._room - len(set().union(*taken))

    @property
    def kept(self) -> int:
        """Tokens in seats nobody sits in."""
        return sum(len(seat.tokens) for seat in self._seats if not seat.taken)

    def take(self, token_ids: list[int], adapters: Adapters) -> Seat:
        """A seat for a reply after `token_ids`, while any is free. What any seat has of them is in it already, all but
        the last two tokens."""
        idle = [seat for seat in self._seats if not seat.taken]
        source, shared = self._likest(token_ids, adapters, None)
        if source is not None and not source.taken and 2 * shared >= len(source.tokens):
            seat = source  # The turn before of the same chat, most likely: it goes on there.
        else:
            others = (seat for seat in idle if seat is not source)
            seat = min(others, key=lambda seat: (bool(seat.tokens), seat.used), default=idle[0])
        if seat is source or source is None:
            self._cut(seat, shared if seat is source else 0)
        else:
            self._copy(source, seat, shared)
        seat.adapters = adapters
        seat.taken = True
        return seat

    def shareable(self, token_ids: list[int], adapters: Adapters) -> int:
        """How many of these tokens need no cell of their own, since a reply under way holds them."""
        seats = [seat for seat in self._seats if seat.taken and seat.adapters == adapters]
        return max((common(seat.tokens, token_ids) for seat in seats), default=0)

    def catch_up(self, seat: Seat, token_ids: list[int]) -> None:
        """Take over from another seat what it has computed of `token_ids` meanwhile."""
        source, shared = self._likest(token_ids, seat.adapters, seat)
        if source is not None and shared > len(seat.tokens):
            self._copy(source, seat, shared)

    def leave(self, seat: Seat) -> None:
        """Nobody sits here any longer; what it holds is kept, unless that is too much."""
        seat.taken = False
        seat.used = next(self._clock)
        while self.kept > self._keep:
            self._cut(self._oldest(), 0)

    def make_room(self, cells: int) -> bool:
        """Forget what is kept, the oldest first, until so many cells are free; whether they are."""
        while self.free < cells and self.kept:
            self._cut(self._oldest(), 0)
        return self.free >= cells

    def add(self, seat: Seat, token_ids: Sequence[int]) -> None:
        """Note tokens that were computed at the end of a seat."""
        cells = [next(self._numbers) for _ in token_ids]
        seat.tokens.extend(token_ids)
        seat.cells.extend(cells)
        self._holders.update((cell, 1) for cell in cells)

    def forget(self) -> None:
        """Note that the whole cache was lost. Who sits stays seated."""
        self._context.clear()
        for seat in self._seats:
            seat.tokens.clear()
            seat.cells.clear()
        self._holders.clear()

    def _oldest(self) -> Seat:
        return min((seat for seat in self._seats if not seat.taken and seat.tokens), key=lambda seat: seat.used)

    def _likest(self, token_ids: list[int], adapters: Adapters, besides: Seat | None) -> tuple[Seat | None, int]:
        most = len(token_ids) - LEAST
        found, shared = None, 0
        for seat in self._seats:
            if seat is not besides and seat.adapters == adapters:
                length = min(common(seat.tokens, token_ids), most)
                if length > shared or (length == shared > 0 and found is not None and found.taken):
                    found, shared = seat, length
        return found, shared

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
