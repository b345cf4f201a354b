"""Branches: the versions of a message, and which one is shown. It must never change or remove a message."""

from __future__ import annotations

from .opened import Opened


class Branches(Opened):
    """The part of `Assistant` that walks between versions."""

    def versions(self, message_id: int) -> list[int]:
        """The ids of a message and of its other versions (same place, same role), oldest first.

        Raises:
            NotFoundError: no such message.
        """
        mine = self.store.messages.get(message_id)
        others = [
            other.id
            for other in self.store.messages.siblings(message_id)
            if other.role == mine.role and other.turn_type == mine.turn_type
        ]
        return sorted([message_id, *others])

    def show_version(self, message_id: int) -> None:
        """Show the branch through this message, down to the newest of all that follows it.

        Raises:
            NotFoundError: no such message.
        """
        message = self.store.messages.get(message_id)
        self.store.messages.show(message.chat_id, self.store.messages.newest_below(message_id))
