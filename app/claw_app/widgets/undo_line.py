"""The line that says a chat was deleted and how to bring it back. It must never know how that is done."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from claw_local.language import N_, _

from ..text import dressed, one_line


class UndoLine(Static):
    """Hidden unless something can be undone. A click undoes too."""

    class Pressed(Message):
        """The person clicked the line."""

    def __init__(self) -> None:
        super().__init__(id="undo-line")
        self.display = False

    def tell(self, title: str) -> None:
        """Say that this chat was deleted; an empty title hides the line."""
        self.display = bool(title)
        self.update(
            Content.assemble(
                dressed(N_("Deleted “{title}”"), title=Content(one_line(title))),
                ("   " + _("Ctrl+Z undoes"), "bold $secondary"),
            )
        )

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Pressed())
