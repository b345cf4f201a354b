"""The messages of the open chat. It must never ask for them itself: the screen hands them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Button

from ..text import count
from .bubbles import Bubble, Notice, Question
from .welcome import Welcome

if TYPE_CHECKING:
    from claw_local.store import Signal, StoredMessage

PAGE = 30
"""Messages drawn at once; Markdown is costly to lay out, and few people scroll further back."""


class Transcript(VerticalScroll, can_focus=False):
    """Scrolls; stays at the end while a reply streams, unless the person has scrolled away."""

    def __init__(self) -> None:
        super().__init__(id="transcript")
        self._earlier: list[StoredMessage] = []
        self._signals: Mapping[int, Sequence[Signal]] = {}

    def compose(self) -> ComposeResult:
        yield Vertical(id="messages")

    @property
    def _list(self) -> Vertical:
        # At least as tall as the screen: an anchored container puts shorter content at its bottom.
        return self.query_one("#messages", Vertical)

    async def show(self, messages: Sequence[StoredMessage], signals: Mapping[int, Sequence[Signal]]) -> None:
        """Show a chat from its end."""
        self._signals = signals
        said = [message for message in messages if message.role in ("user", "assistant")]
        self._earlier = said[:-PAGE]
        with self.app.batch_update():
            await self._list.remove_children()
            await self._list.mount_all([*self._earlier_button(), *map(self._bubble, said[-PAGE:])])
        self.anchor()

    async def welcome(self, *, first: bool, learning: bool, home: str) -> None:
        """Show an empty chat."""
        self._earlier = []
        with self.app.batch_update():
            await self._list.remove_children()
            welcome = Welcome()
            await self._list.mount(welcome)
        welcome.tell(first=first, learning=learning, home=home)

    def _earlier_button(self) -> list[Widget]:
        if not self._earlier:
            return []
        return [Button(f"▲ {count(len(self._earlier), 'earlier message')}", id="earlier", compact=True)]

    async def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        page, self._earlier = self._earlier[-PAGE:], self._earlier[:-PAGE]
        self.anchor(False)
        with self.app.batch_update():
            await event.button.remove()
            await self._list.mount_all([*self._earlier_button(), *map(self._bubble, page)], before=0)

    def _bubble(self, message: StoredMessage) -> Widget:
        if message.role == "user":
            return Question(message.content)
        state = "cut" if message.state == "done" and message.finish_reason == "length" else message.state
        bubble = Bubble(message.content, message_id=message.id, state=state, detail=describe(message))
        bubble.mark(self._signals.get(message.id, ()))
        return bubble

    async def add(self, *widgets: Widget) -> None:
        """Add messages at the end, and go there."""
        await self.query(Welcome).remove()
        await self._list.mount_all(widgets)
        self.anchor()

    async def note(self, text: str, *, error: bool = False) -> None:
        """Say something about the chat, in the chat."""
        await self._list.mount(Notice(text, error=error))
        self.scroll_end(animate=False)

    def replies(self) -> list[Bubble]:
        """The replies on the screen, oldest first."""
        return list(self.query(Bubble))

    def chosen(self) -> Bubble | None:
        """The reply meant by a thumb: the focused one, else the last that is in the store."""
        stored = [bubble for bubble in self.replies() if bubble.message_id]
        focused = self.screen.focused
        if isinstance(focused, Bubble) and focused.message_id:
            return focused
        return stored[-1] if stored else None

    def step(self, by: int) -> None:
        """Move the focus from reply to reply."""
        replies, focused = self.replies(), self.screen.focused
        if not replies:
            return
        place = replies.index(focused) + by if isinstance(focused, Bubble) and focused in replies else len(replies) - 1
        replies[max(0, min(place, len(replies) - 1))].focus()


def describe(message: StoredMessage) -> str:
    """How a stored reply was made, in a few words."""
    parts = []
    if message.response_ids:
        parts.append(count(len(message.response_ids), "token"))
    total = message.timings.get("total") or message.timings.get("total_s")
    if total:
        parts.append(f"{total:.1f} s")
    parts.append(f"adapter {message.adapter_id}" if message.adapter_id else "base model")
    return " · ".join(parts)
