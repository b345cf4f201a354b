"""The texts that are forgotten, to be looked for where nobody knows by id. It must never be written down."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_PIECE = 4 << 20
SHORTEST = 12
"""Characters; what is shorter than that is said in many places, and counts only where it stands alone."""


@dataclass(frozen=True)
class Texts:
    """Folded texts: found wherever they stand (`parts`), or only where nothing else does (`whole`).

    Attributes:
        letters: those of the parts that were written with other letters than ASCII's.
    """

    parts: tuple[str, ...]
    whole: frozenset[str]
    letters: tuple[str, ...] = ()

    @classmethod
    def of(cls, said: Iterable[str], containing: str = "") -> Texts:
        """What was said, and a text that was asked for itself, which is found however short it is."""
        said = [text.strip() for text in said if text.strip()]
        folded = {text.casefold() for text in said}
        parts, letters = set[str](), set[str]()
        for text in said:
            found = {part.strip().casefold() for part in (text, *text.splitlines())}
            found = {part for part in found if len(part) >= SHORTEST}
            parts |= found
            letters |= found if not text.isascii() else set()
        if asked := containing.strip():
            parts.add(asked.casefold())
            letters |= set() if asked.isascii() else {asked.casefold()}
        return cls(tuple(sorted(parts)), frozenset(folded - parts), tuple(sorted(letters)))

    def stand_in(self, text: str) -> bool:
        folded = text.strip().casefold()
        return folded in self.whole or any(part in folded for part in self.parts)

    def in_letters(self, data: bytes) -> bool:
        """Whether one of the parts with other letters than ASCII's stands in a file, capitals or not, as UTF-8 or as
        JSON writes it."""
        most = 12 * max(map(len, self.letters), default=0)
        for start in range(0, len(data) if self.letters else 0, _PIECE):
            text = data[start : start + _PIECE + most].decode("utf-8", "ignore")
            unescaped = _ESCAPES.sub(lambda found: found[0].encode().decode("unicode_escape"), text)
            unescaped = unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
            if any(part in folded for folded in (text.casefold(), unescaped.casefold()) for part in self.letters):
                return True
        return False

    def as_bytes(self) -> list[bytes]:
        """The parts as they stand in lower-cased files: in UTF-8, and as JSON writes them."""
        return [form for part in self.parts for form in (part.encode(), json.dumps(part)[1:-1].encode())]
