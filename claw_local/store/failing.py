"""SQLite's and the system's errors in words that a person can act on. It must never know what was written."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from ..language import _
from . import opening


def is_the_disk(error: Exception) -> bool:
    """Whether it is full, or fails."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def is_read_only(path: Path, error: Exception) -> bool:
    """Whether it is that a database, or what SQLite puts beside it, may not be written here."""
    if may_be_written(path):
        return False
    if isinstance(error, OSError):
        return error.errno in (errno.EROFS, errno.EACCES, errno.EPERM)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def may_be_written(path: Path) -> bool:
    """Whether the system lets a database and its folder be written, full or not."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def log_of(path: Path) -> Path | None:
    """The log beside a database that was not closed, which may hold its newest part; None: there is none, or it is
    empty."""
    log = path.with_name(f"{path.name}-wal")
    return log if log.exists() and log.stat().st_size > 0 else None


def in_words(path: Path, error: Exception, busy_s: float) -> str:
    """What went wrong with a database, and what to do. `busy_s`: how long a lock was waited for, in seconds."""
    text = str(error)
    if "full" in text or (isinstance(error, OSError) and error.errno == 28):
        return _("The disk is full: {path} could not be written. Free some space, and try again.", path=path)
    if "disk I/O" in text:
        return _(
            "The disk failed or is full ({reason} at {path}). Free some space, or check the disk, and try again.",
            reason=text,
            path=path,
        )
    if "readonly" in text or "read-only" in text.lower() or isinstance(error, PermissionError):
        return _(
            "{path} cannot be written. Make it and its folder writable, or set CLAW_LOCAL_HOME to another folder.",
            path=path,
        )
    if "not a database" in text and opening.may_be_encrypted(path):
        return _(
            "{path} is encrypted and the note of it is gone, or it is damaged. `claw-local encrypt on` makes the note "
            "anew from the passphrase: try that first; `claw-local doctor` says more.",
            path=path,
        )
    if "malformed" in text or "not a database" in text:
        return _(
            "{path} is damaged ({reason}). Move it away to start afresh, or put back a copy "
            "from {backups}; `claw-local doctor` says more.",
            path=path,
            reason=text,
            backups=path.parent / "backups",
        )
    if "locked" in text or "busy" in text:
        return _(
            "{path} has been locked by another program for {seconds:.0f} s. Close that program and try again.",
            path=path,
            seconds=busy_s,
        )
    if "unable to open" in text and not may_be_written(path) and (log := log_of(path)) is not None:
        return _(
            "{path} cannot be written, and its newest part stands in {log}, which can only be read where it can be "
            "written. Copy the folder to such a place, and set CLAW_LOCAL_HOME to the copy.",
            path=path,
            log=log.name,
        )
    if "unable to open" in text or isinstance(error, OSError):
        return _(
            "{path} cannot be opened ({reason}). Check that its folder exists and is writable.", path=path, reason=text
        )
    return _("The database refused: {reason}. Run `claw-local doctor` to check {path}.", reason=text, path=path)
