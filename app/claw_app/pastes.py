"""Escape characters in a paste, before Textual's parser sees them: it would take what follows one for keys that were
typed, Enter among them, so that a paste could send itself. It must never know what a paste is for."""

from __future__ import annotations

from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.message import Message

_ESCAPE, _START, _END = "\x1b", "\x1b[200~", "\x1b[201~"


class Pastes:
    """Where pastes begin and end in what a terminal sends, however that is cut into pieces."""

    def __init__(self) -> None:
        self._inside = False
        self._before = self._held = ""

    def clean(self, data: str) -> str:
        """The next piece, without the escape characters that stand within a paste."""
        cleaned, text, self._held = "", self._held + data, ""
        while text:
            if self._inside:
                end = text.find(_END)
                if end < 0:
                    begun = next(n for n in range(len(_END) - 1, -1, -1) if text.endswith(_END[:n]))
                    self._held = text[len(text) - begun :]
                    return cleaned + text[: len(text) - begun].replace(_ESCAPE, "")
                cleaned += text[:end].replace(_ESCAPE, "") + _END
                text = text[end + len(_END) :]
            else:
                # Nothing is held back here: a lone escape is a key that somebody waits for.
                seen = self._before + text
                start = seen.find(_START)
                if start < 0:
                    self._before = seen[1 - len(_START) :]
                    return cleaned + text
                cut = start + len(_START) - len(self._before)
                cleaned, text = cleaned + text[:cut], text[cut:]
            self._inside, self._before = not self._inside, ""
        return cleaned


def guard_pastes() -> None:
    """Have every parser of this process clean pastes. To be called once."""
    feed = XTermParser.feed

    def guarded(self: XTermParser, data: str) -> Iterable[Message]:
        pastes: Pastes = self.__dict__.setdefault("_pastes", Pastes())
        cleaned = pastes.clean(data)
        return feed(self, cleaned) if cleaned or not data else ()

    XTermParser.feed = guarded  # type: ignore[method-assign]
