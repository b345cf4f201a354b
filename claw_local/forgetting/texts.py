"""The texts that are forgotten, to be looked for where nobody knows by id. It must never be written down."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

SHORTEST = 12
"""Characters; what is shorter than that is said in many places, and counts only where it stands alone."""


@dataclass(frozen=True)
class Texts:
    """Folded texts: found wherever they stand (`parts`), or only where nothing else does (`whole`)."""

    parts: tuple[str, ...]
    whole: frozenset[str]

    @classmethod
    def of(cls, said: Iterable[str], containing: str = "") -> Texts:
        """What was said, and a text that was asked for itself, which is found however short it is."""
        folded = {text.strip().casefold() for text in said} - {""}
        parts = {text for text in folded if len(text) >= SHORTEST}
        parts |= {line.strip() for text in folded for line in text.splitlines() if len(line.strip()) >= SHORTEST}
        if containing.strip():
            parts.add(containing.strip().casefold())
        return cls(tuple(sorted(parts)), frozenset(folded - parts))

    def stand_in(self, text: str) -> bool:
        folded = text.strip().casefold()
        return folded in self.whole or any(part in folded for part in self.parts)

    def as_bytes(self) -> list[bytes]:
        """The parts as they stand in lower-cased files: in UTF-8, and as JSON writes them."""
        return [form for part in self.parts for form in (part.encode(), json.dumps(part)[1:-1].encode())]
