"""Private chats: same model, adapters and hints, and nothing of them is ever on disk, judged or learned from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..assistant import Assistant
from ..store import Chat, Store
from ..store.chats import Teaching
from ..store.in_memory import InMemoryDatabase

if TYPE_CHECKING:
    from ..forgetting import Forgetting
    from ..idle.learning import Learning

COPIED = ("hints",)
"""What private chats begin with. They are copies: what is changed in private stays there, and is forgotten."""


class Incognito(Assistant):
    """An assistant whose chats live in memory only. Make one with `Assistant.incognito()`; `close()` forgets them."""

    def __init__(self, owner: Assistant) -> None:
        store = Store(owner.paths, InMemoryDatabase(owner.paths))
        super().__init__(owner.paths, owner.settings, owner._model, store=store, engines=owner._engines)
        self._owner = owner
        self._shelving = None
        # What is in use is no private matter: a switch made in another program holds here too.
        self.adapters = owner.adapters
        self._copy(owner.store)

    def _copy(self, theirs: Store) -> None:
        with theirs.database.read() as db:
            rows = {table: list(db.table(table).rows) for table in COPIED}
        for hint in rows["hints"]:
            # The chats and messages they came from are not here.
            hint.update({"chat_id": None, "message_id": None})
        with self.store.database.write() as db:
            for table in COPIED:
                db.table(table).insert_all(row for row in rows[table])

    @property
    def learn(self) -> Learning:
        """The owner's: whether learning is on is not a private matter. Nothing here takes part in it."""
        return self._owner.learn

    @property
    def forgetting(self) -> Forgetting:
        """The owner's: what is said here is forgotten by itself."""
        return self._owner.forgetting

    def _teaching(self, chat: Chat, learn: bool | None) -> Teaching:
        return "never"

    def close(self) -> None:
        """Forget the chats. The model stays open: it is the owner's."""
        self._judge.close()
        self.tools.close()
        self.store.close()

    def incognito(self) -> Assistant:
        return self._owner.incognito()
