"""Which process writes what, told apart by number and start time. It must never know what is written."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path


def process_identity() -> str:
    """This process as "pid:start", so that a number used again is not mistaken for it."""
    return _identity(os.getpid())


def process_lives(identity: str) -> bool:
    """Whether the process of `process_identity()` still runs."""
    pid, _, _ = identity.partition(":")
    return pid.isdigit() and _identity(int(pid)) == identity


def switched_off_since(identity: str, seen_at: str) -> bool:
    """Whether the machine was started anew since a process was last seen.

    Args:
        seen_at: when that was, ISO 8601. Used where the system does not number its starts; a clock that was set
            meanwhile makes it a guess.
    """
    boot = identity.rpartition("@")[2] if "@" in identity else ""
    if boot and _boot():
        return boot != _boot()
    import psutil

    try:
        seen = datetime.fromisoformat(seen_at).astimezone(UTC)
    except ValueError:
        return False
    return datetime.fromtimestamp(psutil.boot_time(), UTC) > seen + timedelta(seconds=1)


def _identity(pid: int) -> str:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return ""
        if sys.platform == "linux" and _boot():
            # Clock ticks since the machine's start: the time of day may be set while the process lives.
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            return f"{pid}:{fields[19]}@{_boot()}"
        return f"{pid}:{process.create_time():.2f}"
    except (psutil.Error, OSError, IndexError):
        return ""


@cache
def _boot() -> str:
    """Which start of the machine this is, by Linux's own number for it; "" elsewhere."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii")[:8]
    except (OSError, ValueError):
        return ""
