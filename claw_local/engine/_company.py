"""Who is decoded together now: who comes in, who goes, and whose tokens make up the next batch.

Only the thread that computes uses it. It must never know who waits in which line, or how a batch is computed.
"""

from __future__ import annotations

from collections.abc import Hashable

from ._native import Adapters
from ._pace import Pace, share
from ._request import Request
from ._seats import Seats
from .prefixes import common

SHARED = 16
"""So many tokens in common with a prompt that is being read are worth waiting for."""
AHEAD = 32
"""Tokens that a reply must have room for before it begins."""

Part = tuple[Request, list[int]]
"""Tokens of one request that go into a batch."""


class Company:
    """The replies that have a seat.

    Args:
        limit: longest prompt plus reply, in tokens.
        most: most of them at once.

    Attributes:
        members: in the order in which they came in.
    """

    def __init__(self, seats: Seats, pace: Pace, *, limit: int, most: int) -> None:
        self.members: list[Request] = []
        self._seats = seats
        self._pace = pace
        self._limit = limit
        self._most = most
        self._steps = 0
        self._served: dict[Adapters, int] = {}

    # Coming and going

    def places_of(self, client: Hashable) -> int:
        return sum(request.client == client for request in self.members)

    def fits(self, request: Request) -> bool:
        """Whether there is a place, and room for its prompt and a little more beside the others'."""
        if not self.members:
            return True
        if len(self.members) >= self._most:
            return False
        ids = request.ids
        coming = sum(other.left for other in self.members)
        need = len(ids) - self._seats.shareable(ids, request.adapters) + min(AHEAD, self._most_left(request))
        if request.needs_all_room:  # It had to make room once; let that not happen again and again.
            need += sum(self._most_left(other) for other in (request, *self.members))
        return need + coming <= self._seats.free

    def _most_left(self, request: Request) -> int:
        """Most tokens that may still be drawn for it."""
        written = len(request.generation.response_ids)
        wished = request.generation.sampling.max_tokens - written
        return max(1, min(wished, self._limit - len(request.generation.prompt_ids) - written))

    def join(self, request: Request) -> None:
        """It gets a seat, with all that any seat has of it already. A prompt that is being read and begins like this
        one is waited for."""
        ids = request.ids
        request.seat = seat = self._seats.take(ids, request.adapters)
        for other in self.members:
            if other.adapters == request.adapters and other.left > 1:
                alike = min(common(other.ids, ids), len(ids) - 2)
                if alike >= max(len(seat.tokens), request.waits_until) + SHARED:
                    request.waits_for, request.waits_until = other, alike
        self.members.append(request)

    def part(self, request: Request) -> None:
        """It gives its seat back; what was computed is kept there while there is room."""
        self.members.remove(request)
        for other in self.members:
            if other.waits_for is request:
                other.waits_for = None
        request.waits_for, request.waits_until = None, 0
        if request.seat is not None:
            self._seats.leave(request.seat)
            request.seat = None

    def to_make_way_for(self, client: Hashable) -> Request | None:
        """Who should give a place to this client: the last that came in of one with far more places, if any has."""
        rich = max((other.client for other in self.members), key=self.places_of, default=client)
        if self.places_of(rich) < self.places_of(client) + 2:
            return None
        return [other for other in self.members if other.client == rich][-1]

    # The next batch

    def next_group(self) -> list[Request]:
        """Whose turn it is: all under one set of adapters, the set that waited longest; one alone where it is in doubt
        which of several made a batch fail."""
        self._steps += 1
        ready = [request for request in self.members if not self._must_wait(request)]
        group = [request for request in ready if request.suspect][:1] or ready
        adapters = min((request.adapters for request in group), key=lambda other: self._served.get(other, 0))
        in_use = {request.adapters for request in self.members}
        self._served = {key: step for key, step in self._served.items() if key in in_use}
        self._served[adapters] = self._steps
        return [request for request in group if request.adapters == adapters]

    def plan(self, group: list[Request]) -> list[Part]:
        """A token of each that is being written, and of the prompts as much as keeps the others' tokens coming."""
        reading = [request for request in group if request.left > 1]
        anyone_writes = any(request.left == 1 for request in self.members)
        shares = share([request.left for request in reading], self._pace.room(anyone_writes))
        counts = [(request, 1) for request in group if request.left == 1]
        counts += [(request, count) for request, count in zip(reading, shares, strict=True) if count]
        return [(request, request.ids[request.computed : request.computed + count]) for request, count in counts]

    def find_room(self, parts: list[Part]) -> Request | None:
        """Room for a batch; if there is none, returns who has to go: who came in last."""
        if sum(len(new) for _, new in parts) <= self._seats.free:
            return None
        last = self.members[-1]
        last.needs_all_room = True
        return last

    def _must_wait(self, request: Request) -> bool:
        """Whether what it shares with a prompt that is being read is still on its way; then it is taken over."""
        if not request.waits_until:
            return False
        other = request.waits_for
        if other is not None and other.computed < request.waits_until and not other.suspect:
            return True
        request.waits_for, request.waits_until = None, 0
        if request.seat is not None:
            self._seats.catch_up(request.seat, request.ids)
        return False

    def computed(self, parts: list[Part]) -> None:
        """A batch was computed."""
        for request, new in parts:
            if request.seat is not None:
                self._seats.add(request.seat, new)
            request.suspect = request.suspect and request.computed < request.suspect_until
            if not request.generation.response_ids:
                request.generation.evaluated += len(new)

    def lost(self, parts: list[Part]) -> Request | None:
        """A batch failed, and with it the whole cache is gone. One of several may be to blame, so each is tried alone;
        who fails alone has failed, and is returned."""
        failed_at = [request.computed + len(new) for request, new in parts]
        self._seats.forget()
        if len(parts) == 1:
            return parts[0][0]
        for (request, _), place in zip(parts, failed_at, strict=True):
            request.suspect, request.suspect_until = True, place
        return None
