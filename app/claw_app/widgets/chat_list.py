"""The list of chats at the side, grouped by day. It must never open a chat itself: it says which one was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ..text import day_name, one_line

if TYPE_CHECKING:
    from claw_local.store import Chat


class ChatList(OptionList):
    """Newest first; a heading for each day. Enter opens, d deletes, r renames."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d,delete", "act('delete')", "Delete", show=False),
        Binding("r", "act('rename')", "Rename", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """The person wants to see this chat."""

        chat_id: int

    @dataclass
    class Act(Message):
        """The person wants to delete or rename this chat: `what` is "delete" or "rename"."""

        chat_id: int
        what: str

    def __init__(self) -> None:
        super().__init__(id="chats", markup=False, compact=True)
        self._shown: list[tuple[int, str, str]] = []

    def on_mount(self) -> None:
        self.border_title = "Chats"

    def fill(self, chats: Sequence[Chat], current: int | None) -> None:
        """Show these chats; nothing is redrawn if nothing has changed."""
        today = date.today()
        rows = [(chat.id, one_line(chat.title)[:80] or "New chat", day_name(chat.updated_at, today)) for chat in chats]
        if rows != self._shown:
            self._shown = rows
            options: list[Option] = []
            heading = ""
            for chat_id, title, day in rows:
                if day != heading:
                    heading = day
                    options.append(Option(Content.styled(day, "bold $quiet"), disabled=True))
                options.append(Option(Content(title), id=str(chat_id)))
            if not options:
                options.append(Option(Content.styled("No chats yet", "$quiet"), disabled=True))
            self.set_options(options)
        self.point_at(current)

    def point_at(self, chat_id: int | None) -> None:
        """Put the cursor on a chat."""
        ids = [option.id for option in self.options]
        self.highlighted = ids.index(str(chat_id)) if chat_id is not None and str(chat_id) in ids else None

    def title_of(self, chat_id: int) -> str:
        """The title shown for a chat; empty if it is not in the list."""
        return next((title for shown_id, title, _ in self._shown if shown_id == chat_id), "")

    def titles(self) -> list[tuple[int, str]]:
        """(id, title) of every chat shown."""
        return [(chat_id, title) for chat_id, title, _ in self._shown]

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if event.option_id is not None:
            self.post_message(self.Chosen(int(event.option_id)))

    def action_act(self, what: str) -> None:
        """Delete or rename the chat under the cursor."""
        if self.highlighted is not None:
            chosen = self.get_option_at_index(self.highlighted).id
            if chosen is not None:
                self.post_message(self.Act(int(chosen), what))
