"""A run's place on the machine: last in line for the processor and the disk, and the first to go when memory is short.

It must never import torch: priorities are set before torch starts its threads, which inherit them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

NICE = 19
OOM_SCORE = "700"
"""How much rather than others the kernel ends this process when memory runs out (0 is like others, 1000 always)."""


def be_modest() -> None:
    """Take the lowest priorities there are. What the system does not offer is left out."""
    process = psutil.Process()
    try:
        process.nice(psutil.IDLE_PRIORITY_CLASS if sys.platform == "win32" else NICE)
    except (psutil.Error, OSError):
        pass
    try:
        if sys.platform == "win32":
            process.ionice(psutil.IOPRIO_VERYLOW)
        elif hasattr(process, "ionice"):
            process.ionice(psutil.IOPRIO_CLASS_IDLE)
    except (psutil.Error, OSError):
        pass
    if sys.platform == "linux":
        try:
            Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
        except OSError:
            pass
