"""Other programs' SQLite databases, read without ever writing to them or beside them, even while their program runs.

It must never know what the tables mean.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from ..errors import HistoryError
from ..language import _

MAGIC = b"SQLite format 3\0"
PATIENCE_S = 10.0
_TRIES = 5
_BESIDE = ("-wal", "-journal")


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that reads. Raises HistoryError, also for what goes wrong while it is used."""
    with tempfile.TemporaryDirectory(prefix="claw-local-") as folder:
        connection: sqlite3.Connection | None = None
        try:
            source = _copy(path, Path(folder)) if _needs_copy(path) else path
            mode = "ro" if source == path else "rw"
            connection = sqlite3.connect(
                f"file:{quote(str(source.absolute()))}?mode={mode}", uri=True, timeout=PATIENCE_S
            )
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            connection.execute("pragma query_only = on")
            connection.execute("pragma trusted_schema = off")
            yield connection
        except sqlite3.Error as error:
            raise HistoryError(_in_words(path, error)) from error
        except UnicodeDecodeError as error:  # A name in it, or SQLite's own words about it, is no text.
            raise HistoryError(_damaged(path, _("it holds bytes that are no text"))) from error
        except OSError as error:
            raise HistoryError(
                _("{path} cannot be read ({error}).", path=path, error=error.strerror or error)
            ) from error
        finally:
            if connection is not None:
                connection.close()


def tables(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """The tables of a database, with their columns; "rowid" among them where rows have numbers."""
    names = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
    found = {
        name: {row["name"] for row in connection.execute("select name from pragma_table_info(?)", [name])}
        for (name,) in names
    }
    for name, columns in found.items():
        quoted = name.replace('"', '""')
        with suppress(sqlite3.OperationalError):
            connection.execute(f'explain select rowid from "{quoted}"')
            columns.add("rowid")
    return found


def _needs_copy(path: Path) -> bool:
    """Whether merely reading would leave files beside it (write-ahead log), or needs to repair it first (journal)."""
    with path.open("rb") as file:
        header = file.read(20)
    return 2 in header[18:20] or any(_beside(path, ending).exists() for ending in _BESIDE)


def _copy(path: Path, folder: Path) -> Path:
    target = folder / "copy.db"
    for _try in range(_TRIES):
        before = _state(path)
        shutil.copyfile(path, target)
        for ending in _BESIDE:
            if _beside(path, ending).exists():
                shutil.copyfile(_beside(path, ending), _beside(target, ending))
        if _state(path) == before:
            return target
        for ending in _BESIDE:
            _beside(target, ending).unlink(missing_ok=True)
    raise HistoryError(
        _("{path} is being written to all the time. Close the program it belongs to, and try again.", path=path)
    )


def _state(path: Path) -> list[tuple[int, int]]:
    files = [path, *(_beside(path, ending) for ending in _BESIDE)]
    return [(file.stat().st_mtime_ns, file.stat().st_size) if file.exists() else (0, 0) for file in files]


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _in_words(path: Path, error: sqlite3.Error) -> str:
    text = str(error)
    if "locked" in text or "busy" in text:
        return _("{path} is locked by the program it belongs to. Close it, and try again.", path=path)
    return _damaged(path, text)


def _damaged(path: Path, what: str) -> str:
    return _("{path} is a damaged database ({what}). Use a copy of it that is whole.", path=path, what=what)
