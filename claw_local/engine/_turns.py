"""Whose turn it is to compute: the chat before the judge, one reply after the other.

Only a matter of order, never of safety: what computes holds the engine's lock for each step anyway. It must never know
what is computed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

PATIENCE_S = 1.0
"""A reply that is not read on for so long lets others pass."""
ENOUGH_S = 5.0
"""Who has waited so long is no longer passed by replies, so that a stream of them keeps nobody out for good."""
_LOOK_S = 0.05


class Flag(Protocol):
    """What stops waiting: a `threading.Event`, or anything else that can be asked."""

    def is_set(self) -> bool: ...


class Turns:
    """A queue of one, whose holder may rest: hold it while nobody reads on.

    A resting holder is passed by anyone after `PATIENCE_S`, and at once by its own thread, which would otherwise wait
    for itself.
    """

    def __init__(self, hurry: Callable[[], None] = lambda: None) -> None:
        """`hurry` is called when a reply begins to wait: whoever computes for something else should break off."""
        self._hurry = hurry
        self._changed = threading.Condition()
        self._holder: object = None
        self._holder_is_urgent = False
        self._thread = 0
        self._resting_since: float | None = None
        self._urgent: list[object] = []
        self._overdue: list[object] = []

    def take(self, who: object, cancel: Flag | None = None, *, urgent: bool = False) -> bool:
        """Wait for the turn, or take it up again. False if `cancel` was set first."""
        with self._changed:
            since = time.monotonic()
            waiting: list[object] | None = None
            try:
                while not self._is_free_for(who, urgent):
                    if cancel is not None and cancel.is_set():
                        return False
                    if waiting is None and urgent:
                        waiting = self._urgent
                        waiting.append(who)
                        self._hurry()
                    elif waiting is None and time.monotonic() - since > ENOUGH_S:
                        waiting = self._overdue
                        waiting.append(who)
                    self._changed.wait(_LOOK_S)
            finally:
                if waiting is not None:
                    waiting.remove(who)
            self._holder, self._thread, self._resting_since = who, threading.get_ident(), None
            self._holder_is_urgent = urgent
            return True

    @property
    def urgent(self) -> bool:
        """Whether a reply has the turn, or waits for it."""
        with self._changed:
            return bool(self._urgent) or (self._holder is not None and self._holder_is_urgent)

    def _is_free_for(self, who: object, urgent: bool) -> bool:
        if self._holder is who:
            return True
        if self._holder is None:
            if self._overdue:
                return who in self._overdue
            return urgent or not self._urgent
        if self._resting_since is None:
            return False
        return self._thread == threading.get_ident() or time.monotonic() - self._resting_since > PATIENCE_S

    def rest(self, who: object) -> None:
        """Keep the turn, and note that nothing is computed until `take` is called again."""
        with self._changed:
            if self._holder is who:
                self._thread, self._resting_since = threading.get_ident(), time.monotonic()

    def leave(self, who: object) -> None:
        with self._changed:
            if self._holder is who:
                self._holder, self._resting_since = None, None
                self._changed.notify_all()

    def give_way(self, who: object, cancel: Flag | None = None) -> bool:
        """Let a waiting reply go first, between two steps, and whoever has waited too long. False if `cancel` was set
        while waiting."""
        if self._urgent or self._overdue:
            self.leave(who)
        return self.take(who, cancel)

    def begin(self, who: object, cancel: Flag | None = None) -> bool:
        """`take` for a reply: whoever computes for something else breaks off. False if `cancel` was set first."""
        return self.take(who, cancel, urgent=True)

    def pass_on(self, who: object, cancel: Flag | None = None) -> bool:
        """The same for replies that never end, since new ones keep joining them: they hurry nobody who was let in, or
        whoever has waited for them would be broken off at once."""
        held = self.give_way(who, cancel)
        with self._changed:
            if self._holder is who:
                self._holder_is_urgent = True
        return held
