"""Whether keys pressed where letters are commands are commands or writing. It must never know what the commands do."""

from __future__ import annotations

from typing import Literal

BURST_S = 0.3
"""Printable keys that follow each other faster are writing: somebody believes to be in the field."""

Kind = Literal["changes", "harmless", "nothing"]
"""What a key does: something that changes or begins something; something to look at or move with; nothing."""


class Burst:
    """The printable keys of one go."""

    def __init__(self) -> None:
        self._keys = ""
        self._writing = False
        self._at = float("-inf")

    def hear(self, character: str, kind: Kind, at: float) -> str:
        """Take a key pressed at a time (seconds).

        Returns:
            What belongs into the field: all that was pressed in this go. "": the key is what it is otherwise.
        """
        if at - self._at > BURST_S:
            self._keys, self._writing = "", False
        held = self._keys[-1:] == character  # One key again and again, or held down, is no word.
        self._at, self._keys = at, self._keys + character
        if self._writing and kind != "harmless" and not held:
            text, self._keys, self._writing = self._keys, "", False
            return text
        self._writing = self._writing or kind != "harmless"
        return ""
