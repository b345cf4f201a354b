"""`doctor --fix`: mends what can be mended without losing anything, and says what it did.

What would lose something (a damaged database) it leaves to the person: the remedy says how. Nothing is deleted but what
no program can use any more; what is replaced is kept beside.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from .. import leftovers
from ..errors import ClawError
from ..language import _, ngettext
from ..paths import Paths
from ..store import opening
from .check import Check, tidy
from .database import has_strays_alone
from .home import open_to_others


def fix(paths: Paths, found: Iterable[Check]) -> Iterator[Check]:
    """Mend what was found, as far as it can be; yields what was done about each, or why nothing could be."""
    for check in found:
        mend = FIXES.get(check.name)
        if check.state == "ok" or mend is None:
            continue
        try:
            done = mend(paths, check)
        except (ClawError, OSError, sqlite3.Error) as error:
            yield Check(check.name, "problem", _("could not be mended: {error}", error=tidy(error)), check.remedy)
            continue
        if done:
            yield Check(check.name, "ok", done)


def _settings(paths: Paths, check: Check) -> str:
    """A settings file that cannot be read is put aside; the defaults hold then."""
    if not paths.settings.is_file() or _is_valid(paths):
        return ""  # What is wrong stands in the environment.
    return _("the settings were put aside as {file}; the defaults hold now", file=tidy(_put_aside(paths.settings)))


def _is_valid(paths: Paths) -> bool:
    """Whether nothing is wrong with the settings file by itself."""
    from .. import settings_file

    try:
        settings_file.check_text(paths, paths.settings.read_text("utf-8"))
    except (ClawError, OSError, UnicodeDecodeError):
        return False
    return True


def _private(paths: Paths, check: Check) -> str:
    changed = list(open_to_others(paths))
    for path in changed:
        path.chmod(0o700 if path.is_dir() else 0o600)
    if not changed:
        return ""
    return ngettext(
        "{count} file or folder is yours alone now",
        "{count} files and folders are yours alone now",
        len(changed),
        count=len(changed),
    )


def _leftovers(paths: Paths, check: Check) -> str:
    count = len(leftovers.sweep(paths))
    return ngettext(
        "{count} half-made file or folder was deleted",
        "{count} half-made files and folders were deleted",
        count,
        count=count,
    )


def _database(paths: Paths, check: Check) -> str:
    """Rows that point at nothing are taken out, after a copy was made. Any other damage is the person's to decide."""
    if not has_strays_alone(paths.database):
        return ""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    copy = paths.backups / f"{stamp}-before-fix.db"
    paths.backups.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(opening.connect(paths.database, timeout=10.0)) as connection:
        with closing(opening.connect(copy, like=paths.database)) as target:
            connection.backup(target)
        count = 0
        connection.execute("BEGIN IMMEDIATE")
        # What pointed at a row that goes may point at nothing then.
        while strays := {(row[0], row[1]) for row in connection.execute("PRAGMA foreign_key_check")}:
            for table, rowid in strays:
                quoted = str(table).replace('"', '""')
                if rowid is None:  # A table without row numbers cannot be mended one by one.
                    connection.execute("ROLLBACK")
                    return ""
                connection.execute(f'delete from "{quoted}" where rowid = ?', (rowid,))
                count += 1
        connection.execute("COMMIT")
    return ngettext(
        "{count} row that pointed at nothing was taken out; {copy} is how it was before",
        "{count} rows that pointed at nothing were taken out; {copy} is how it was before",
        count,
        count=count,
        copy=tidy(copy),
    )


def _work(paths: Paths, check: Check) -> str:
    from ..store import Store

    store = Store(paths)  # Opening it closes replies that were cut off.
    try:
        store.runs.bury()
    finally:
        store.close()
    return _("what was cut off is closed, with all that was shown of it")


def _search(paths: Paths, check: Check) -> str:
    from ..store import Store, search

    store = Store(paths)
    try:
        with store.database.write() as db:
            search.rebuild(db)
    finally:
        store.close()
    return _("the index was made anew")


def _adapters(paths: Paths, check: Check) -> str:
    from ..adapters.registry import put_into_use, verify_all
    from ..store import Store

    store = Store(paths)
    changed = []
    try:
        for record in store.adapters.list():
            if record.state != "active":
                continue
            try:
                verify_all(record)
            except ClawError:
                put_into_use(store, None, record.model_sha256)
                changed.append(record.id)
    finally:
        store.close()
    named = ", ".join(map(str, changed))
    if not changed:
        return ""
    return _("adapter {id} is out of use, the base model answers; its hints stand in prompts again", id=named)


def _log(paths: Paths, check: Check) -> str:
    with closing(opening.connect(paths.database, timeout=10.0)) as connection:
        (busy, *_rest) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return "" if busy else _("the log was emptied")


FIXES: dict[str, Callable[[Paths, Check], str]] = {
    "settings": _settings,
    "private": _private,
    "leftovers": _leftovers,
    "database": _database,
    "work": _work,
    "search": _search,
    "adapters": _adapters,
    "log": _log,
}
"""By the name of the check; each says what it did, or "" if it could do nothing."""


def _put_aside(file: Path) -> Path:
    target = file.with_name(f"{file.name}.{datetime.now(UTC).strftime('%Y%m%dT%H%M%S')}.broken")
    os.replace(file, target)
    return target
