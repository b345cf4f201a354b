"""The line above the chat: its title, and the learning switch."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, Switch

from ..text import one_line


class TopBar(Horizontal):
    """The switch shows what the assistant says, and asks when the person turns it."""

    @dataclass
    class Turned(Message):
        """The person turned the learning switch."""

        on: bool

    def compose(self) -> ComposeResult:
        yield Static("New chat", id="title")
        yield Static("learning off", id="switch-label")
        yield Switch(id="learning", animate=False, tooltip="May chats teach the assistant? (Ctrl+L)")

    def set_title(self, title: str) -> None:
        """Show the chat's title."""
        self.query_one("#title", Static).update(Content(one_line(title) or "New chat"))

    def set_learning(self, on: bool) -> None:
        """Show whether learning is on, without asking for anything."""
        switch = self.query_one(Switch)
        with switch.prevent(Switch.Changed):
            switch.value = on
        label = self.query_one("#switch-label", Static)
        label.update("learning on" if on else "learning off")
        label.set_class(on, "-on")

    def on_switch_changed(self, event: Switch.Changed) -> None:
        event.stop()
        self.post_message(self.Turned(event.value))
