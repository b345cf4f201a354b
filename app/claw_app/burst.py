"""Whether keys pressed where letters are commands are commands or writing. It must never know what the commands do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BURST_S = 0.3
"""Printable keys that follow each other faster are writing: somebody believes to be in the field."""

Kind = Literal["changes", "harmless", "nothing"]
"""What a key does: something that changes, begins or covers something; something to move with; nothing."""


@dataclass(frozen=True)
class Heard:
    """What is to be done at a key.

    Attributes:
        text: all that was pressed in this go: it belongs into the field, and nothing else is to be done.
        hold: this key is to be kept for `BURST_S`: it may be the first letter of a word.
        release: the key that was kept was a command: it comes before this one.
    """

    text: str = ""
    hold: bool = False
    release: bool = False


class Burst:
    """The printable keys of one go."""

    def __init__(self) -> None:
        self._at = float("-inf")
        self.end()

    def end(self) -> None:
        """What was kept is done, or nobody wants it any more; the next key begins anew."""
        self._keys, self._last = "", ""
        self._writing = self._holding = False

    def hear(self, character: str, kind: Kind, at: float) -> Heard:
        """Take a key pressed at a time (seconds)."""
        late = at - self._at > BURST_S
        release = self._holding
        if late:
            self.end()
        again = self._last == character  # One key again and again, or held down, is no word.
        self._at, self._last = at, character
        if not late and (again or kind == "harmless"):
            if release:  # A command, and what follows is none of a word's letters.
                self._keys, self._writing, self._holding = "", False, False
            self._keys += "" if kind == "changes" else character  # What is done is no writing any more.
            return Heard(release=release)
        self._keys += character
        if self._writing:
            text = self._keys
            self.end()
            return Heard(text=text)
        self._writing = kind != "harmless"
        self._holding = kind == "changes"
        return Heard(hold=self._holding, release=release)
