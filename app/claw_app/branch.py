"""The branch of a chat that is shown, a page at a time. It must never know about widgets; it keeps only ids.

Every method asks the store, so call it where that cannot freeze the screen (`ClawApp.quick`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claw_local.assistant import Assistant
    from claw_local.store import Signal, StoredMessage, ToolCall


@dataclass(frozen=True)
class Shown:
    """One message with all that is known beside it.

    Attributes:
        versions: the ids of all messages that stand in its place, its own included.
        because: what the person said after a reply, which is what the judge went by.
        by: who wrote a reply that no model wrote here: "you" or "elsewhere"; else empty.
        said: its text, without the calls of tools in it.
        call: what a tool was called for, of a message with what it returned.
    """

    message: StoredMessage
    signals: tuple[Signal, ...]
    versions: tuple[int, ...]
    because: str
    said: str
    call: ToolCall | None = None
    by: str = ""


class Branch:
    """What was said in a chat, as far as it is on the branch that is shown.

    Args:
        leave_out: messages that are not to be shown: the reply that is being written here.
        stored: show a last reply only once all of it is stored: another program is writing it.
    """

    def __init__(
        self, assistant: Assistant, chat_id: int, *, leave_out: Collection[int] = (), stored: bool = False
    ) -> None:
        self._assistant, self.chat_id = assistant, chat_id
        self._leave_out, self._stored = frozenset(leave_out), stored
        self.ids: list[int] = []
        self._places: dict[int, int] = {}
        self.refresh()

    def refresh(self) -> None:
        """Find out anew which messages there are."""
        chat = self._assistant.chat(self.chat_id)
        self._other = "elsewhere" if chat.origin else "you"
        messages = self._assistant.store.messages
        self.ids = [one for one in messages.branch_ids(chat.head_id) if one not in self._leave_out]
        if self._stored and self.ids and messages.get(self.ids[-1]).state == "streaming":
            del self.ids[-1]
        self._places = {message_id: place for place, message_id in enumerate(self.ids)}

    def cut(self, message_id: int) -> None:
        """Something else is being said in the place of a message: it and all that follows it are no longer on it."""
        place = self._places.get(message_id)
        if place is not None:
            del self.ids[place:]
            self._places = {one: number for number, one in enumerate(self.ids)}

    def __len__(self) -> int:
        return len(self.ids)

    def place(self, message_id: int) -> int | None:
        """Where a message stands on the branch, from 0; None if it does not."""
        return self._places.get(message_id)

    def load(self, start: int, stop: int) -> list[Shown]:
        """The messages from one place up to another, without that one."""
        start, stop = max(0, start), max(0, stop)
        ids = self.ids[start:stop]
        if not ids:
            return []
        store = self._assistant.store
        # One more: what was said after the last of them.
        messages = {message.id: message for message in store.messages.some(self.ids[start : stop + 1])}
        signals, versions = store.signals.of(ids), store.messages.versions_of(ids)
        results = [one for one in ids if one in messages and messages[one].role == "tool"]
        calls = store.tool_calls.of_results(results) if results else {}
        after = dict(zip(ids, self.ids[start + 1 : stop + 1], strict=False))
        return [
            Shown(
                messages[one],
                tuple(signals[one]),
                tuple(versions[one]),
                _asked(messages.get(after.get(one, 0))),
                self._assistant.tools.said(messages[one]),
                calls.get(one),
                "" if messages[one].role != "assistant" or messages[one].by_model else self._other,
            )
            for one in ids
            if one in messages
        ]


def _asked(message: StoredMessage | None) -> str:
    return message.content if message is not None and message.role == "user" else ""
