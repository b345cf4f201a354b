"""The engines that are open: few at a time, the one used longest ago closed first, never one that is answering.

It must never know how an engine is opened.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from ..errors import EngineError
from ..language import _
from .base import ChatEngine

Key = TypeVar("Key", bound=Hashable)

MOST_SERVED = 8
"""Engines behind a server take no memory to speak of; still there is an end to them."""


@runtime_checkable
class Remembers(Protocol):
    """An engine that can go and come back as if it had stayed. `on_gpu`: it holds a GPU's memory."""

    @property
    def on_gpu(self) -> bool: ...
    def remember(self) -> Any: ...
    def recall(self, remembered: Any) -> None: ...


@dataclass
class _Open:
    engine: ChatEngine
    users: int = 0
    used: int = 0


class Lease:
    """An engine that stays open until `release`. `load_s`: seconds it took to open; 0 if it was open."""

    def __init__(self, engine: ChatEngine, load_s: float, give_back: Callable[[], None]) -> None:
        self.engine = engine
        self.load_s = load_s
        self._give_back: Callable[[], None] | None = give_back

    def release(self) -> None:
        """Only the first call counts."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()


class Engines(Generic[Key]):
    """Open engines by where their models are.

    Args:
        make: opens one; may take seconds and raise.
        in_memory: whether a model takes memory here, or is only spoken to.
        most: most models in memory at once. More are only open while more are answering.
    """

    def __init__(self, make: Callable[[Key], ChatEngine], *, in_memory: Callable[[Key], bool], most: int) -> None:
        self._make = make
        self._in_memory = in_memory
        self._most = most
        self._open: dict[Key, _Open] = {}
        self._away: dict[Key, Any] = {}
        self._guard = threading.Lock()
        self._opening = threading.Lock()
        self._clock = 0
        self._closed = False

    def peek(self, key: Key) -> ChatEngine | None:
        """The engine if it is open."""
        with self._guard:
            found = self._open.get(key)
            return found.engine if found is not None else None

    def opened(self) -> list[Key]:
        """What is open, used last first."""
        with self._guard:
            return sorted(self._open, key=lambda key: -self._open[key].used)

    def engines(self) -> list[ChatEngine]:
        """Those that are open."""
        with self._guard:
            return [entry.engine for entry in self._open.values()]

    def on_gpu(self) -> bool:
        """Whether one of them holds a GPU's memory."""
        with self._guard:
            return any(isinstance(one.engine, Remembers) and one.engine.on_gpu for one in self._open.values())

    def away(self) -> list[Key]:
        """Those that were let go of, and nobody has wanted since."""
        with self._guard:
            return list(self._away)

    def let_go(self) -> bool:
        """Close those that hold a GPU's memory, if nobody uses them. The next lease opens them anew, and what they knew
        of the last chats is there again. Returns whether none is left that holds any."""
        with self._opening:
            with self._guard:
                chosen = {
                    key: entry.engine
                    for key, entry in self._open.items()
                    if not entry.users and isinstance(entry.engine, Remembers) and entry.engine.on_gpu
                }
                for key in chosen:
                    del self._open[key]
            for key, engine in chosen.items():
                remembered = engine.remember()  # Nobody can reach it any longer.
                engine.close()
                with self._guard:
                    if not self._closed:
                        self._away[key] = remembered
        return not self.on_gpu()

    def lease(self, key: Key) -> Lease:
        """The engine, opened if need be; others that are open already can be had meanwhile."""
        if (found := self._take(key)) is not None:
            return self._lease(key, found, 0.0)
        with self._opening:
            if (found := self._take(key)) is not None:
                return self._lease(key, found, 0.0)
            started = time.perf_counter()
            # Room is made before, not after: two large models may not fit beside each other.
            self._close_unused(room_for=key)
            engine = self._make(key)
            with self._guard:
                remembered = self._away.pop(key, None)
            if remembered is not None and isinstance(engine, Remembers):
                engine.recall(remembered)
            with self._guard:
                if self._closed:
                    engine.close()
                    raise _closing()
                entry = self._open[key] = _Open(engine)
                self._note_use(entry)
            self._close_unused()
            return self._lease(key, entry, time.perf_counter() - started)

    @contextmanager
    def using(self, key: Key) -> Iterator[ChatEngine]:
        """The same as a `with` block."""
        lease = self.lease(key)
        try:
            yield lease.engine
        finally:
            lease.release()

    def _take(self, key: Key) -> _Open | None:
        with self._guard:
            if self._closed:
                raise _closing()
            entry = self._open.get(key)
            if entry is not None:
                self._note_use(entry)
            return entry

    def _note_use(self, entry: _Open) -> None:
        self._clock += 1
        entry.used = self._clock
        entry.users += 1

    def _lease(self, key: Key, entry: _Open, load_s: float) -> Lease:
        def give_back() -> None:
            with self._guard:
                entry.users -= 1
            self._close_unused()

        return Lease(entry.engine, load_s, give_back)

    def _close_unused(self, room_for: Key | None = None) -> None:
        closing: list[ChatEngine] = []
        with self._guard:
            for here, most in ((True, self._most), (False, MOST_SERVED)):
                group = [key for key in self._open if self._in_memory(key) == here]
                if room_for is not None and self._in_memory(room_for) == here:
                    most -= 1
                idle = sorted((key for key in group if not self._open[key].users), key=lambda key: self._open[key].used)
                for key in idle[: max(0, len(group) - most)]:
                    closing.append(self._open.pop(key).engine)
        for engine in closing:
            engine.close()

    def close(self) -> None:
        """Close all, those that are answering too: their replies end as "cancelled"."""
        with self._guard:
            self._closed = True
            self._away.clear()
            engines = [entry.engine for entry in self._open.values()]
            self._open.clear()
        for engine in engines:
            engine.close()


def _closing() -> EngineError:
    return EngineError(_("The model is no longer loaded: claw-local is closing. Start it again."))
