"""All keys on one page, made from the table of commands."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ..commands import GROUPS, key_names

_KEY_WIDTH = 22
_TYPING = (
    ("Enter", "Send"),
    ("Ctrl+J, Shift+Enter", "New line"),
    ("Up, Down", "What you sent before, from an empty field"),
    ("PageUp, PageDown", "Scroll the chat"),
    ("Tab, Shift+Tab", "To the replies and the list, and back"),
    ("j, k", "Next and previous reply, on a reply"),
    ("d, r", "Delete and rename, in the list of chats"),
    ("Ctrl+P", "Everything, by name"),
    ("Ctrl+C twice, Ctrl+D", "Quit; Ctrl+D from an empty field"),
)


class Help(ModalScreen[None]):
    """Any of Esc, F1, ? and q closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,question_mark,q", "dismiss", "Close", show=False)]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog large"):
            yield Static(Content.assemble(("Keys", "bold $primary"), ("   Esc closes", "$quiet")))
            with VerticalScroll():
                yield Static(self._page())

    def _page(self) -> Content:
        lines: list[Content] = []

        def add(keys: str, words: str) -> None:
            lines.append(Content.assemble((f"  {keys:<{_KEY_WIDTH}}", "$secondary"), words))

        for group, commands in GROUPS.items():
            lines.append(Content.styled(group, "bold"))
            for command in commands:
                add(key_names(command), command.help)
            lines.append(Content(""))
        lines.append(Content.styled("Typing and moving", "bold"))
        for keys, words in _TYPING:
            add(keys, words)
        lines.append(Content(""))
        lines.append(Content.styled("Marks", "bold"))
        add("▲  ▼  ·", "A reply was good, bad, neither; Tab to it to see why")
        add("in tmux", "Press Ctrl+B twice, or - on the reply")
        return Content("\n").join(lines)
