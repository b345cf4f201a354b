"""Which process writes what, told apart by number and start time. It must never know what is written."""

from __future__ import annotations

import os
from datetime import UTC, datetime


def process_identity() -> str:
    """This process as "pid:start time", so that a number used again is not mistaken for it."""
    return _identity(os.getpid())


def parent_identity() -> str:
    """The same of the process that started this one."""
    return _identity(os.getppid())


def process_lives(identity: str) -> bool:
    """Whether the process of `process_identity()` still runs."""
    pid, _, _ = identity.partition(":")
    return pid.isdigit() and _identity(int(pid)) == identity


def started_at() -> datetime:
    """When this machine was started, by its clock of now."""
    import psutil

    return datetime.fromtimestamp(psutil.boot_time(), UTC)


def _identity(pid: int) -> str:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return ""
        return f"{pid}:{process.create_time():.2f}"
    except psutil.Error:
        return ""
