"""Who comes next: each client in turn, and within one client who came first. It must never know what they want."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Those who wait, by client. Not thread-safe."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, deque[Item]] = {}

    def __len__(self) -> int:
        return sum(len(line) for line in self._lines.values())

    def __iter__(self) -> Iterator[Item]:
        for line in list(self._lines.values()):
            yield from list(line)

    def put(self, client: Hashable, item: Item, *, first: bool = False) -> None:
        """At the end of its client's line, or `first`: before all others of it."""
        line = self._lines.setdefault(client, deque())
        if first:
            line.appendleft(item)
        else:
            line.append(item)

    def peek(self, served: Callable[[Hashable], int]) -> tuple[Hashable, Item]:
        """Who comes next: of the client that is served least now, and of those the one whose turn it is.

        Raises:
            LookupError: nobody waits.
        """
        if not self._lines:
            raise LookupError("nobody waits")
        client = min(self._lines, key=served)  # The first of equals: the one that was not served for longest.
        return client, self._lines[client][0]

    def remove(self, client: Hashable, item: Item) -> None:
        """It waits no longer. Its client goes behind the others if it was the first of its line."""
        line = self._lines[client]
        was_first = line[0] is item
        line.remove(item)
        if not line:
            del self._lines[client]
        elif was_first:
            self._lines[client] = self._lines.pop(client)
