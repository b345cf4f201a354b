"""SQLCipher: SQLite with every page encrypted, from the package sqlcipher3. It must never know where keys come from."""

from __future__ import annotations

import sqlite3
import threading
from typing import Any

from .. import extras
from ..errors import StoreError
from ..language import _

_ERRORS = (
    "InterfaceError",
    "DatabaseError",
    "DataError",
    "OperationalError",
    "IntegrityError",
    "InternalError",
    "ProgrammingError",
    "NotSupportedError",
)
_guard = threading.Lock()


def missing() -> str:
    """What to say where the package is not installed."""
    return _(
        "An encrypted store needs a package that is not installed. Install it: {command}",
        command=extras.to_type("encrypted"),
    )


def package() -> Any:
    """The package's module, which is used as `sqlite3` is, and raises what `sqlite3` raises.

    Raises:
        StoreError: it is not installed.
    """
    try:
        from sqlcipher3 import dbapi2
    except ImportError as error:
        raise StoreError(missing()) from error
    with _guard:
        _join_errors(dbapi2)
    return dbapi2


def is_installed() -> bool:
    try:
        package()
    except StoreError:
        return False
    return True


def version(connection: sqlite3.Connection) -> str:
    """SQLCipher's own version, such as "4.19.0 community"; "" for a connection without it."""
    row = connection.execute("PRAGMA cipher_version").fetchone()
    return str(row[0]) if row else ""


def _join_errors(module: Any) -> None:
    """Make each of its errors one of `sqlite3`'s, so that whoever catches those catches these, too."""
    for name in _ERRORS:
        kind, known = getattr(module, name), getattr(sqlite3, name)
        if not issubclass(kind, known):
            kind.__bases__ = (*kind.__bases__, known)
