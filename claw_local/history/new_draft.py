"""What is typed for the chat that is not begun yet: a text for each open window. It must never know what is typed."""

from __future__ import annotations

import uuid

from ..store import Store
from ..store.processes import process_identity, process_lives

NAME = "draft"
"""Of a flag: alone as older versions wrote it, else followed by `/WINDOW/PROCESS`; without a process nobody has it."""


class NewDraft:
    """One window's text. No window writes over another's: each has its own, and what a window that is gone had typed
    is there for the next one that shows a new chat."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._window = uuid.uuid4().hex[:12]
        self._used = False

    def get(self) -> str:
        """This window's text; if it has none, one that nobody has any more becomes its own, the newest first."""
        own = self._store.flags.get(self._name)
        return own or self._adopted()

    def set(self, text: str) -> None:
        """Keep it; "" if there is none."""
        self._used = True
        with self._store.database.write() as db:
            if text:
                self._store.flags.set(self._name, text)
            else:
                db.execute("delete from flags where name = ?", [self._name])

    def leave(self) -> None:
        """The window is closed: the next one may have what was typed."""
        if self._used:
            with self._store.database.write() as db:
                db.execute("update flags set name = ? where name = ?", [f"{NAME}/{self._window}/", self._name])

    @property
    def _name(self) -> str:
        return f"{NAME}/{self._window}/{process_identity()}"

    def _adopted(self) -> str:
        if not self._left():
            return ""
        with self._store.database.write() as db:  # Two windows that open at once do not get the same.
            for name, text in self._left()[:1]:
                self._used = True
                db.execute("update flags set name = ? where name = ?", [self._name, name])
                return text
        return ""

    def _left(self) -> list[tuple[str, str]]:
        with self._store.database.read() as db:
            rows = db.table("flags").rows_where(
                "(name = ? or substr(name, 1, ?) = ?) and value != ''",
                [NAME, len(NAME) + 1, f"{NAME}/"],
                order_by="rowid desc",
            )
            return [(row["name"], row["value"]) for row in rows if not process_lives(row["name"].rpartition("/")[2])]
