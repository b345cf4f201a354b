"""LoRA files that are loaded into a model, each once. It must never know which of them is in use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from ..errors import AdapterError
from ..language import _
from ._machine import Machine
from ._native import Adapters
from .base import AdapterSlot, ModelInfo
from .models import check_adapter


class Loaded:
    """The adapters of one model.

    Args:
        busy: whether something computes step after step without a pause.
    """

    def __init__(self, machine: Machine, info: ModelInfo, *, busy: bool) -> None:
        self._machine = machine
        self._info = info
        self._busy = busy
        self._known: dict[tuple[str, int, int], int] = {}

    def load(self, adapters: Sequence[AdapterSlot]) -> Adapters:
        """These adapters, as contexts take them. Takes at most one step's time.

        Raises:
            AdapterError: a file is missing, damaged, or does not fit the model.
        """
        loaded: list[tuple[int, float]] = []
        for slot in adapters:
            if not math.isfinite(slot.scale):
                raise AdapterError(_("The scale of {path} is not a number. Give one such as 1.0.", path=slot.path))
            loaded.append((self._one(slot.path), float(slot.scale)))
        return tuple(loaded)

    def files(self) -> dict[int, Path]:
        """Which file each loaded adapter came from, by its number in `Adapters`."""
        return {number: Path(path) for (path, _size, _time), number in self._known.items()}

    def _one(self, path: Path) -> int:
        key = check_adapter(path, self._info)
        machine, who = self._machine, object()
        if (known := self._known.get(key)) is not None and not machine.closed:
            return known
        try:
            if self._busy:  # A lock alone might not be had in between two steps.
                machine.turns.take(who, urgent=True)
            with machine.computing():
                if key not in self._known:
                    self._known[key] = machine.model.load_adapter(path)
                return self._known[key]
        finally:
            machine.turns.leave(who)
