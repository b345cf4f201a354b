"""What can be known of the machine and whoever sits at it: one file a probe. Each answers a value or "unknown".

What an unknown value counts as is written in `conditions.py` and docs/idle.md: nothing is begun that could be unsafe
because of it, and nothing waits for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ...language import _
from . import desktop, gpu, power, temperature
from .load import Load
from .reading import Reading, unknown

__all__ = ["Load", "Machine", "Probes", "Reading", "Readings", "unknown"]


@dataclass(frozen=True)
class Readings:
    """All that was measured at one moment.

    Attributes:
        desktop_idle_s: seconds that keyboard and mouse have been left alone.
        on_mains: whether the machine runs on mains power.
        load: share of the processor that others use, 0 to 1.
        temperature: of the processor, in °C.
        gpu: share of the busiest NVIDIA GPU in use, 0 to 1.
    """

    desktop_idle_s: Reading[float]
    on_mains: Reading[bool]
    load: Reading[float]
    temperature: Reading[float]
    gpu: Reading[float]


class Probes(Protocol):
    """Whoever can tell these things; in tests a simulated machine."""

    def desktop_idle_s(self) -> Reading[float]: ...

    def read(self, run_pid: int | None) -> Readings:
        """Everything; `run_pid` is the process of the run that is going on, whose work does not count as load."""


class Machine:
    """The machine this runs on."""

    def __init__(self) -> None:
        self._load = Load()

    def desktop_idle_s(self) -> Reading[float]:
        """Seconds that keyboard and mouse have been left alone."""
        return desktop.idle_s()

    def read(self, run_pid: int | None) -> Readings:
        """Ask all probes. Takes about a second at most where nothing hangs; each gives up after a few."""
        return Readings(
            desktop_idle_s=desktop.idle_s(),
            on_mains=power.on_mains(),
            load=self._load.share(run_pid),
            temperature=temperature.hottest(),
            # What a run of ours uses of a GPU cannot be told from what others use.
            gpu=gpu.busiest() if run_pid is None else unknown(_("the run itself uses it")),
        )
