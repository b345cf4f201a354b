"""How much of the machine a run may use: threads, memory, and how it gets by with less. It must never compute."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from ..engine._threads import usable_cores
from ..settings import Settings

ECONOMIES = (
    "plenty",
    "smaller micro-batches",
    "gradient checkpointing",
    "base weights as in the file",
    "NF4 base weights",
)
"""How hard a run saves memory; each level includes those before it."""
MOST_ECONOMY = len(ECONOMIES) - 1

SHARE = 0.75
"""Of what is free when a run starts, where the person has set nothing."""
NEAR = 0.8
"""A run that held this share of its bound was near it."""
SCARCE = 0.05
"""Share of all memory below which there was too little for everyone."""


def threads(settings: Settings) -> int:
    """Threads that a run computes with."""
    return settings.learning.threads or usable_cores()


def bound_bytes(settings: Settings) -> int:
    """Most bytes that a run which starts now may hold."""
    if settings.learning.memory_gib:
        return int(settings.learning.memory_gib * 2**30)
    return int(SHARE * psutil.virtual_memory().available)


@dataclass
class Seen:
    """What was seen of a run's memory while it went on: the most it held, and the least that was free."""

    bound: int
    most: int = 0
    least_free: int = 1 << 62

    def look(self, pid: int) -> None:
        """Look at it now; one that is gone is left out."""
        try:
            self.most = max(self.most, psutil.Process(pid).memory_info().rss)
        except psutil.Error:
            return
        self.least_free = min(self.least_free, psutil.virtual_memory().available)

    @property
    def short(self) -> bool:
        """Whether memory was short."""
        return self.most > NEAR * self.bound or self.least_free < SCARCE * psutil.virtual_memory().total
