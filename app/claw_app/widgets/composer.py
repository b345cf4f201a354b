"""Where the person types. It must never know what happens to the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from ..text import clean

PASTE_CHARACTERS = 4000
PASTE_LINES = 60
_NEW_LINE = ("shift+enter", "alt+enter", "ctrl+j")


class Composer(TextArea):
    """A text field that grows with its text. Enter sends; Shift+Enter, Alt+Enter or Ctrl+J begins a new line.

    A long paste is kept aside and stands in the field as one short label, so that a megabyte costs nothing to edit.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "older", "Older text", show=False),
        Binding("down", "newer", "Newer text", show=False),
        Binding("pageup", "scroll(-1)", "Scroll up", show=False),
        Binding("pagedown", "scroll(1)", "Scroll down", show=False),
        Binding("ctrl+d", "delete_or_leave", "Delete right, or quit", show=False),
    ]

    @dataclass
    class Sent(Message):
        """The person pressed Enter. The field keeps its text until `accept`."""

        text: str

    @dataclass
    class Scrolled(Message):
        """The person wants to see other messages while typing."""

        pages: int

    class Left(Message):
        """Ctrl+D on an empty field: the end of input, as in a shell."""

    def __init__(self) -> None:
        super().__init__(
            id="composer",
            soft_wrap=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            placeholder="Ask anything",
        )
        self._pastes: dict[str, str] = {}
        self._sent: list[str] = []
        self._place = 0
        self._draft = ""

    def on_mount(self) -> None:
        self.border_subtitle = "Enter sends · Ctrl+J new line"

    @property
    def whole_text(self) -> str:
        """What will be sent: the text with every label replaced by its paste."""
        if not self._pastes:
            return self.text
        labels = re.compile("|".join(re.escape(label) for label in self._pastes))
        return labels.sub(lambda found: self._pastes[found.group()], self.text)

    def accept(self) -> None:
        """The text was taken: empty the field, and remember the text for the Up key."""
        text = self.text.strip()
        if text and (not self._sent or self._sent[-1] != text):
            self._sent.append(text)
        self._place = len(self._sent)
        self.text = ""

    def give_back(self, text: str) -> None:
        """Sending failed: put the text back, unless the person has begun another one; then the Up key brings it."""
        if not self.text.strip():
            self.text = ""
            self._insert_pasted(text)
        self._place = len(self._sent)

    def _insert_pasted(self, text: str) -> None:
        text = clean(text)
        if len(text) > PASTE_CHARACTERS or text.count("\n") > PASTE_LINES:
            label = f"[pasted text {len(self._pastes) + 1}: {len(text):,} characters]"
            self._pastes[label] = text
            text = label
        result = self._replace_via_keyboard(text, *self.selection)
        if result is not None:
            self.move_cursor(result.end_location)

    async def _on_key(self, event: events.Key) -> None:
        # Not bindings: a binding that comes before the field's own keys would overtake letters typed just before it.
        action = {"enter": self.action_send, **dict.fromkeys(_NEW_LINE, self.action_new_line)}.get(event.key)
        if action is None:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        action()

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._insert_pasted(event.text)

    def action_paste(self) -> None:
        """Paste the app's own clipboard."""
        self._insert_pasted(self.app.clipboard)

    def action_send(self) -> None:
        """Offer the text to whoever listens."""
        if self.text.strip():
            self.post_message(self.Sent(self.whole_text))

    def action_new_line(self) -> None:
        """Begin a new line at the cursor."""
        self._replace_via_keyboard("\n", *self.selection)

    def action_older(self) -> None:
        """Move up; from the first line on to what was sent before."""
        if self.cursor_location[0] > 0 or self._place == 0 or not self._browsing:
            self.action_cursor_up()
            return
        if self._place == len(self._sent):
            self._draft = self.text
        self._show(self._place - 1)

    def action_newer(self) -> None:
        """Move down; from the last line back to what was being typed."""
        at_end = self.cursor_location[0] == self.document.line_count - 1
        if not at_end or self._place >= len(self._sent) or not self._browsing:
            self.action_cursor_down()
            return
        self._show(self._place + 1)

    @property
    def _browsing(self) -> bool:
        """Whether the field is empty or holds an old text unchanged: only then do the arrows replace it."""
        return not self.text or (self._place < len(self._sent) and self.text == self._sent[self._place])

    def _show(self, place: int) -> None:
        self._place = place
        self.text = self._sent[place] if place < len(self._sent) else self._draft
        self.move_cursor(self.document.end)

    def action_scroll(self, pages: int) -> None:
        """Scroll the messages, not the field."""
        self.post_message(self.Scrolled(pages))

    def action_delete_or_leave(self) -> None:
        """Delete the character at the cursor; on an empty field, leave."""
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.Left())
