"""Which content a database holds: a restore puts another in its place, in which the same numbers mean other rows.

It must never know what the tables mean.
"""

from __future__ import annotations

import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from sqlite_utils import Database as SqliteDatabase

from ..errors import RestoredError
from ..language import _

MARK = "content"
"""Name of the flag by which one content is told from another; one that was never restored has none."""


def mark_of(connection: sqlite3.Connection) -> str:
    """The mark of what a database holds; "" if it was never restored."""
    try:
        row = connection.execute("select value from flags where name = ?", (MARK,)).fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return ""
    return str(row[0]) if row else ""


def mark_anew(connection: sqlite3.Connection) -> None:
    """What this database holds is about to take the place of something else."""
    connection.execute("insert or replace into flags (name, value) values (?, ?)", (MARK, uuid.uuid4().hex))


class Content:
    """The part of a database that knows which content the numbers are of that its program has in hand.

    `_known`: its mark; None while the database is being opened.
    """

    _known: str | None = None
    _local: threading.local

    if TYPE_CHECKING:

        def read(self) -> AbstractContextManager[SqliteDatabase]: ...

    @property
    def content(self) -> str:
        """The mark of the content that what is written here is meant for."""
        only: str | None = getattr(self._local, "only", None)
        return (self._known or "") if only is None else only

    @contextmanager
    def only(self, mark: str) -> Iterator[None]:
        """What this thread writes meanwhile is meant for this content, whatever is accepted in between."""
        before = getattr(self._local, "only", None)
        self._local.only = mark
        try:
            yield
        finally:
            self._local.only = before

    @property
    def there(self) -> str:
        """The mark of the content that is there now. Raises StoreError."""
        with self.read() as db:
            return mark_of(db.conn)

    def accept(self, mark: str | None = None) -> None:
        """The program has let go of every number it knew: from now on it writes into the content of this mark; None
        means what is there now."""
        self._known = self.there if mark is None else mark

    def _check_content(self, connection: sqlite3.Connection) -> None:
        """Raises RestoredError: another content was put in the place of the one that is written into."""
        if self._known is not None and mark_of(connection) != self.content:
            raise RestoredError(
                _(
                    "The chats were put back from a backup meanwhile, so nothing was written. "
                    "Open the chat again from the list."
                )
            )
