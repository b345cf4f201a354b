"""Places to compute in, given out fairly: one client after the other, however many requests each has waiting.

It must never know what is done in a place.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque

from .errors import Busy

MOST_WAITING = 128
MOST_OF_ONE = 32
"""Requests that may wait, all together and of one client."""
LONGEST_RETRY_S = 60


class Places:
    """`count` places; whoever waits gets one in turn, round robin over clients. For one event loop.

    Args:
        each: most places of one client at a time; None: all of them.
    """

    def __init__(
        self,
        count: int,
        *,
        each: int | None = None,
        most_waiting: int = MOST_WAITING,
        most_of_one: int = MOST_OF_ONE,
    ) -> None:
        self.count = count
        self._each = count if each is None else each
        self._most_waiting = most_waiting
        self._most_of_one = most_of_one
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._typical_s = 2.0

    @property
    def taken(self) -> int:
        return self._held.total()

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self._waiting.values())

    async def take(self, client: str) -> Place:
        """Wait for a place; to be given back with `free`.

        Raises:
            Busy: too many wait already.
        """
        if self.taken < self.count and self._held[client] < self._each:
            # Whoever waits while a place is free has all that one client may have.
            self._held[client] += 1
            return Place(self, client)
        line = self._waiting.get(client)
        if self.waiting >= self._most_waiting or (line is not None and len(line) >= self._most_of_one):
            raise Busy("Too many requests are waiting. Try again in a moment.", retry_after_s=self._retry_s())
        if line is None:
            line = self._waiting[client] = deque()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(client)  # It came just as the client went away.
            elif turn in line:
                line.remove(turn)
                if not line:
                    self._waiting.pop(client, None)
            raise
        return Place(self, client)

    def _free(self, client: str, used_s: float) -> None:
        self._typical_s += 0.2 * (used_s - self._typical_s)
        self._pass_on(client)

    def _pass_on(self, of: str) -> None:
        """A client gives a place back, to whoever is next; else it is free."""
        self._held -= Counter((of,))  # Who has none left is not remembered.
        while self.taken < self.count:
            client = next((one for one in self._waiting if self._held[one] < self._each), None)
            if client is None:
                return
            line = self._waiting.pop(client)
            turn = line.popleft()
            if line:
                self._waiting[client] = line  # At the end: the others come first.
            if not turn.done():
                self._held[client] += 1
                turn.set_result(None)

    def _retry_s(self) -> int:
        return max(1, min(LONGEST_RETRY_S, round(self._typical_s * self.waiting / self.count)))


class Place:
    """One place that was given out."""

    def __init__(self, places: Places, client: str) -> None:
        self._places: Places | None = places
        self._client = client
        self._since = time.monotonic()

    def free(self) -> None:
        """Give it back. Only the first call counts."""
        places, self._places = self._places, None
        if places is not None:
            places._free(self._client, time.monotonic() - self._since)
