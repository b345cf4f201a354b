"""SQLite's and the system's errors in words that a person can act on. It must never know what was written."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path


def is_the_disk(error: Exception) -> bool:
    """Whether it is full, or fails."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def in_words(path: Path, error: Exception, busy_s: float) -> str:
    """What went wrong with a database, and what to do. `busy_s`: how long a lock was waited for, in seconds."""
    text = str(error)
    if "full" in text or (isinstance(error, OSError) and error.errno == 28):
        return f"The disk is full: {path} could not be written. Free some space, then send the message again."
    if "disk I/O" in text:
        return f"The disk failed or is full ({text} at {path}). Free some space, or check the disk, and try again."
    if "readonly" in text or "read-only" in text.lower() or isinstance(error, PermissionError):
        return f"{path} cannot be written. Make it and its folder writable, or set CLAW_LOCAL_HOME to another folder."
    if "malformed" in text or "not a database" in text:
        return (
            f"{path} is damaged ({text}). Move it away to start afresh, or put back a copy from "
            f"{path.parent / 'backups'}; `claw-local doctor` says more."
        )
    if "locked" in text or "busy" in text:
        return f"{path} has been locked by another program for {busy_s:.0f} s. Close that program and try again."
    if "unable to open" in text or isinstance(error, OSError):
        return f"{path} cannot be opened ({text}). Check that its folder exists and is writable."
    return f"The database refused: {text}. Run `claw-local doctor` to check {path}."
