"""The line that says a chat was deleted or archived and how to bring it back. It must never know how that is done."""

from __future__ import annotations

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from claw_local.language import N_, _

from ..text import dressed, one_line

SHOWN_S = 30.0
_DELETED, _ARCHIVED = N_("Deleted “{title}”"), N_("Archived “{title}”")


class UndoLine(Static):
    """Hidden unless something can be undone. A click undoes too."""

    class Pressed(Message):
        """The person clicked the line."""

    def __init__(self) -> None:
        super().__init__(id="undo-line")
        self.display = False
        self._title = Content()
        self._said = _DELETED
        self._timer: Timer | None = None

    def tell(self, title: str, *, archived: bool = False, for_s: float = SHOWN_S) -> None:
        """Say that this chat was put away, for a while; an empty title hides the line. A deleted chat comes back with
        Ctrl+Z after that too."""
        self._said = _ARCHIVED if archived else _DELETED
        self.display = bool(title)
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(for_s, self._hide) if title else None
        self._title = Content(one_line(title))
        self.refresh()

    def render(self) -> Content:
        """What was deleted and how to undo it. In a narrow terminal the title is cut, never the rest."""
        said, hint = self._said, "   " + _("Ctrl+Z undoes")
        width = self.content_size.width or self.app.size.width
        left = width - cell_len(hint) - dressed(said, title=Content()).cell_length
        title = self._title.truncate(max(1, left), ellipsis=True)
        return Content.assemble(dressed(said, title=title), (hint, "bold $secondary"))

    def _hide(self) -> None:
        self.display = False

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Pressed())
