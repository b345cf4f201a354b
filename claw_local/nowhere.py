"""What stands in the place of a standard output that was closed, and whether anything was lost in it."""

from __future__ import annotations

import io
import os
from typing import TextIO


class _Nowhere(io.FileIO):
    """The null device, which notes that something was written to it."""

    lost = False

    def write(self, data: object, /) -> int:
        self.lost = True
        return super().write(data)  # type: ignore[arg-type]


def nowhere() -> TextIO:
    """An output that goes nowhere. It takes the number that is free, so that no other file gets it."""
    return io.TextIOWrapper(io.BufferedWriter(_Nowhere(os.devnull, "w")), encoding="utf-8")


def leads_nowhere(stream: TextIO | None) -> bool:
    """Whether an output was closed when the program began."""
    return stream is None or _raw(stream) is not None


def has_lost(stream: TextIO | None) -> bool:
    """Whether something was written to an output that was closed. What is still in its buffer counts once it is
    flushed."""
    raw = _raw(stream)
    return raw is not None and raw.lost


def _raw(stream: TextIO | None) -> _Nowhere | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Nowhere) else None
