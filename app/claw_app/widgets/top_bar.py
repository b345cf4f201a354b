"""The line above the chat: its title, what is special about it, and the learning switch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, Switch

from claw_local.language import _

from ..text import one_line

if TYPE_CHECKING:
    from claw_local.store import Chat

    from ..screens.chat_settings import Choices


class TopBar(Horizontal):
    """The switch shows what the assistant says, and asks when the person turns it."""

    @dataclass
    class Turned(Message):
        """The person turned the learning switch."""

        on: bool

    def compose(self) -> ComposeResult:
        yield Static(_("INCOGNITO"), id="badge")
        yield Static(_("New chat"), id="title")
        yield Static("", id="special")
        yield Static(id="switch-label")
        switch = Switch(id="learning", animate=False, tooltip=_("May chats teach the assistant? (Ctrl+L)"))
        # Tab and Enter typed in haste must not turn learning on: it takes its key, its command or a click.
        switch.can_focus = False
        yield switch

    def on_mount(self) -> None:
        self.add_class("-unknown")  # Until it is known whether learning is on, nothing is said of it.

    def tell(self, chat: Chat | None, *, incognito: bool, pending: Choices | None = None) -> None:
        """Show the chat's title and what it does differently; None is the new chat, `pending` what was set for it."""
        title = one_line(chat.title) if chat is not None else ""
        if incognito:
            title = _("never stored, never learned from")
        self.query_one("#title", Static).update(Content(title or _("New chat")))
        marks = [_("archived")] if chat is not None and chat.archived else []
        own = chat if chat is not None else pending
        if own is not None and own.model:
            marks.append(one_line(own.model).replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".gguf"))
        kept = chat.adapter_id if chat is not None else None
        if chat is None and pending is not None and pending.adapter:
            kept = int(pending.adapter) if pending.adapter.isdecimal() else 0
        if kept is not None:
            marks.append(f"adapter {kept}" if kept else "base model")
        if own is not None and own.sampling:
            marks.append(_("own sampling"))
        if own is not None and not own.learn and not incognito:
            marks.append(_("never teaches"))
        if own is not None and own.workspace:
            marks.append(
                _(
                    "in {folder}/",
                    folder=one_line(own.workspace.replace(chr(92), "/").rstrip("/").rsplit("/", 1)[-1]),
                )
            )
        self.query_one("#special", Static).update(Content(" · ".join(marks)))

    def set_learning(self, on: bool) -> None:
        """Show whether learning is on, without asking for anything."""
        switch = self.query_one(Switch)
        with switch.prevent(Switch.Changed):
            switch.value = on
        label = self.query_one("#switch-label", Static)
        label.update(_("learning on") if on else _("learning off"))
        label.set_class(on, "-on")
        self.remove_class("-unknown")

    def on_switch_changed(self, event: Switch.Changed) -> None:
        event.stop()
        self.post_message(self.Turned(event.value))
