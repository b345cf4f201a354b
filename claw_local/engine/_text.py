"""From token bytes to text that can be shown: whole characters only, and nothing of a stop string.

It must never know about tokens or the model.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class StreamText:
    """Collects bytes and gives out text as soon as it is certain.

    Attributes:
        stopped: a stop string has been met; it and all after it are left out.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.stopped = False

    def push(self, data: bytes) -> str:
        """Add bytes; returns the text that is certain now, which may be empty."""
        if self.stopped:
            return ""
        self._held += self._decoder.decode(data)
        if not self._stops:
            out, self._held = self._held, ""
            return out
        met = [place for stop in self._stops if (place := self._held.find(stop)) >= 0]
        if met:
            self.stopped = True
            out, self._held = self._held[: min(met)], ""
            return out
        sure = len(self._held) - self._undecided()
        out, self._held = self._held[:sure], self._held[sure:]
        return out

    def _undecided(self) -> int:
        """Length of the longest end of the text that a stop string may begin with."""
        return max(
            (
                n
                for stop in self._stops
                for n in range(1, min(len(stop), len(self._held) + 1))
                if self._held.endswith(stop[:n])
            ),
            default=0,
        )

    def finish(self) -> str:
        """What was held back, at the end of a reply. A character that was cut in the middle is dropped."""
        out, self._held = ("" if self.stopped else self._held), ""
        return out
