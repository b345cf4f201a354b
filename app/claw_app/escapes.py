"""Esc and a character that comes at once behind it: a terminal sends the same for Alt and that character, so Textual
reads one key. Of a sign or of Enter it then forgets that there was anything before it.

Not told apart: b and f, which Textual reads as words left and right, and digits, as the signs that macOS has there."""

from __future__ import annotations

from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.events import Key

_ALT = "alt+"


def keep_escapes() -> None:
    """Have every parser of this process say `alt+` of signs and of Enter too. To be called once."""
    read = XTermParser._sequence_to_key_events

    def kept(self: XTermParser, sequence: str, alt: bool = False) -> Iterable[Key]:
        for key in read(self, sequence, alt):
            named = alt and not key.key.startswith(_ALT) and (key.is_printable or key.key == "enter")
            yield Key(f"{_ALT}{key.key}", key.character) if named else key

    XTermParser._sequence_to_key_events = kept  # type: ignore[method-assign]


def behind_escape(key: Key) -> Key | None:
    """The key that came behind Esc, if the two may have been read as this one. A terminal that knows Alt from Esc tells
    no character with it."""
    if not key.key.startswith(_ALT) or not key.is_printable:
        return None
    character = key.character or ""
    return Key(character if character.isalnum() else key.key.removeprefix(_ALT), character)
