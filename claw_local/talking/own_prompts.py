"""What each key has asked before: all that it may be told of what was computed already.

Prompts that begin alike are computed once, whoever sent them. Were a program told how much of its prompt was there
already, it could find out, guess by guess, what another key has asked. It must never know what a prompt says.
"""

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Sequence

from ..engine.prefixes import common

MOST = 64
"""Prompts that are remembered, those of all keys together."""


class OwnPrompts:
    """The newest prompts, with what was answered to them, by key."""

    def __init__(self) -> None:
        self._known: deque[tuple[int, array[int]]] = deque(maxlen=MOST)
        self._lock = threading.Lock()

    def ask(self, key: int, token_ids: Sequence[int]) -> int:
        """How many of the first tokens this key has sent, or was sent, before. From now on it has sent all of them."""
        asked = array("i", token_ids)
        with self._lock:
            own = [kept for owner, kept in self._known if owner == key]
            self._known.append((key, asked))
        return max((common(kept, asked) for kept in own), default=0)

    def answered(self, key: int, token_ids: Sequence[int]) -> None:
        """A key was answered: its prompt with the reply."""
        with self._lock:
            self._known.append((key, array("i", token_ids)))
