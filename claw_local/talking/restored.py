"""Chats that are put back from a backup while an assistant is open. It must never know what a backup is made of."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..store import Store


class Restored:
    """The part of `Assistant` that tells chats from those that a backup has put in their place: the same numbers mean
    other chats then, so nothing is written until whoever has numbers in hand lets go of them."""

    store: Store

    @property
    def content(self) -> str:
        """What tells the chats that are known here from those that a backup puts in their place."""
        return self.store.database.content

    def restored(self) -> str:
        """The `content` that a backup has put in the place of the one that is known here; "" if none has.

        Raises StoreError: the database cannot be read.
        """
        found = self.store.database.there
        return "" if found == self.content else found

    def accept(self, content: str | None = None) -> None:
        """Write into what a backup has put in place, as `restored` gave it; None: as it is now.

        Call it only once every number of a chat, a message, a hint or a run that was known before is let go of: they
        mean others now. Raises StoreError: what there is now cannot be read.
        """
        self.store.database.accept(content)

    def meaning(self, content: str) -> AbstractContextManager[None]:
        """What this thread writes meanwhile is meant for the chats of this `content` alone."""
        return self.store.database.only(content)
