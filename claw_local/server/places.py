"""Places to compute in, given out fairly: one client after the other, however many requests each has waiting.

It must never know what is done in a place.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque

from .errors import Busy

MOST_WAITING = 128
MOST_OF_ONE = 32
"""Requests that may wait, all together and of one client."""
LONGEST_RETRY_S = 60


class Places:
    """`count` places; whoever waits gets one in turn, round robin over clients. For one event loop."""

    def __init__(self, count: int, *, most_waiting: int = MOST_WAITING, most_of_one: int = MOST_OF_ONE) -> None:
        self.count = count
        self._most_waiting = most_waiting
        self._most_of_one = most_of_one
        self._taken = 0
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._typical_s = 2.0
        self._closed = False

    @property
    def taken(self) -> int:
        return self._taken

    @property
    def waiting(self) -> int:
        return sum(len(line) for line in self._waiting.values())

    async def take(self, client: str) -> Place:
        """Wait for a place; to be given back with `free`.

        Raises:
            Busy: too many wait already.
        """
        if self._taken < self.count and not self._waiting:
            self._taken += 1
            return Place(self)
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
                self._pass_on()  # It came just as the client went away.
            elif turn in line:
                line.remove(turn)
                if not line:
                    self._waiting.pop(client, None)
            raise
        return Place(self)

    def _free(self, used_s: float) -> None:
        self._typical_s += 0.2 * (used_s - self._typical_s)
        self._pass_on()

    def _pass_on(self) -> None:
        """Give a place to whoever is next; else it is free."""
        while self._waiting:
            client, line = next(iter(self._waiting.items()))
            turn = line.popleft()
            del self._waiting[client]
            if line:
                self._waiting[client] = line  # At the end: the others come first.
            if not turn.done():
                turn.set_result(None)
                return
        self._taken -= 1

    def _retry_s(self) -> int:
        return max(1, min(LONGEST_RETRY_S, round(self._typical_s * self.waiting / self.count)))


class Place:
    """One place that was given out."""

    def __init__(self, places: Places) -> None:
        self._places: Places | None = places
        self._since = time.monotonic()

    def free(self) -> None:
        """Give it back. Only the first call counts."""
        places, self._places = self._places, None
        if places is not None:
            places._free(time.monotonic() - self._since)
