"""How busy the processor is with the work of others. What a learning run itself uses is left out."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

import psutil

from ...language import _
from .reading import Reading, unknown

FIRST_S = 0.4
"""How long is measured when nothing was measured lately."""
LONG_AGO_S = 60.0
"""What was measured so long ago says nothing about now."""


@dataclass(frozen=True)
class _Sample:
    """Seconds of processor time since the start: of all cores, of those the busy ones, and of our run."""

    total: float
    busy: float
    run: float
    run_pid: int
    at: float


class Load:
    """Measures from one question to the next. Source: psutil.cpu_times."""

    def __init__(self) -> None:
        self._last: _Sample | None = None
        self._guard = threading.Lock()

    def share(self, run_pid: int | None = None) -> Reading[float]:
        """Share of all cores, 0 to 1, that others than the run with this process id used since the last question."""
        with self._guard:
            try:
                if self._last is None or time.monotonic() - self._last.at > LONG_AGO_S:
                    self._last = _sample(run_pid)
                    time.sleep(FIRST_S)
                before, now = self._last, _sample(run_pid)
            except (psutil.Error, OSError) as error:
                return unknown(_("the load could not be read: {error}", error=error))
            self._last = now
        passed = now.total - before.total
        if passed <= 0:
            return unknown(_("nothing was measured yet"))
        ours = max(0.0, now.run - before.run) if now.run_pid == before.run_pid else now.run
        return Reading(min(1.0, max(0.0, (now.busy - before.busy - ours) / passed)))


def _sample(run_pid: int | None) -> _Sample:
    times = psutil.cpu_times()
    # On Linux, guest time is in user time already.
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    waiting = times.idle + getattr(times, "iowait", 0.0)
    return _Sample(total, total - waiting, _used_by(run_pid), run_pid or 0, time.monotonic())


def _used_by(pid: int | None) -> float:
    """Processor time of a process and its children, in seconds; 0 if it is gone."""
    if pid is None or pid == os.getpid():
        return 0.0
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return 0.0
    used = 0.0
    for member in family:
        try:
            times = member.cpu_times()
        except psutil.Error:
            continue
        used += times.user + times.system
    return used
