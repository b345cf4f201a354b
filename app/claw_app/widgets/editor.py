"""A field in which a message is rewritten where it stands. It must never know what happens to the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import TextArea

from claw_local.language import _

_NEW_LINE = ("shift+enter", "alt+enter", "ctrl+j")


class Editor(TextArea):
    """Grows with its text. Ctrl+S keeps it, with `enter_keeps` Enter too; Esc leaves it, asking once where it was
    changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "keep", "Keep", show=False),
        Binding("escape", "leave", "Leave", show=False),
        Binding("ctrl+home", "to_end(False)", "Beginning", show=False),
        Binding("ctrl+end", "to_end(True)", "End", show=False),
    ]

    @dataclass
    class Kept(Message):
        """The person is done with the text."""

        editor: Editor
        text: str

    @dataclass
    class Left(Message):
        """The person wants everything as it was."""

        editor: Editor

    def __init__(self, text: str, *, title: str, enter_keeps: bool = False) -> None:
        super().__init__(text, soft_wrap=True, tab_behavior="focus", highlight_cursor_line=False, classes="editor")
        self.enter_keeps = enter_keeps
        self.border_title = title
        self._first, self._asked = text, False
        self._kept = _("Enter sends · Ctrl+J new line") if enter_keeps else _("Ctrl+S keeps")
        self._say()

    def _say(self) -> None:
        leaves = _("Esc again throws away what you changed") if self._asked else _("Esc leaves it as it was")
        self.border_subtitle = f"{self._kept} · {leaves}"

    def on_text_area_changed(self) -> None:
        self._asked = False
        self._say()

    def on_mount(self) -> None:
        self.move_cursor(self.document.end)
        self.focus(scroll_visible=False)

    def on_resize(self) -> None:
        self.call_after_refresh(self._show_cursor)

    def on_text_area_selection_changed(self) -> None:
        self.call_after_refresh(self._show_cursor)

    def _show_cursor(self) -> None:
        """Scroll what the field stands in, so that the line at the cursor and the ones beside it are in sight: the
        field is as tall as its text, and may reach below the screen."""
        box = next((one for one in self.ancestors if isinstance(one, VerticalScroll)), None)
        if box is None or not self.has_focus:
            return
        line, sight = self.cursor_screen_offset.y, box.content_region
        below, above = line + 2 - sight.bottom, sight.y - (line - 1)
        if below > 0 or above > 0:
            box.scroll_relative(y=below if below > 0 else -above, animate=False)

    async def _on_key(self, event: events.Key) -> None:
        if self.enter_keeps and event.key in ("enter", *_NEW_LINE):
            event.stop()
            event.prevent_default()
            if event.key == "enter":
                self.action_keep()
            else:
                self._replace_via_keyboard("\n", *self.selection)
            return
        await super()._on_key(event)

    def action_to_end(self, last: bool) -> None:
        """Go to the beginning of the text, or to its end."""
        self.move_cursor(self.document.end if last else (0, 0))

    def action_keep(self) -> None:
        """Give the text as it stands."""
        self.post_message(self.Kept(self, self.text))

    def action_leave(self) -> None:
        """Give it up; what was changed is only lost at the second time."""
        if self._asked or self.text == self._first:
            self.post_message(self.Left(self))
        else:
            self._asked = True
            self._say()
