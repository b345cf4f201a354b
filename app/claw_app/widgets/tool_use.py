"""What a tool did, folded to one line; Enter or a click shows what it returned. It must never know how tools work."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from claw_local.language import N_, _, ngettext

from ..text import clean, excerpt, one_line

_STATES = {
    "done": ("✓", "$success", ""),
    "failed": ("✗", "$error", N_("failed")),
    "declined": ("–", "$warning", N_("declined")),
    "stopped": ("–", "$warning", N_("stopped")),
    "undone": ("↶", "$warning", N_("undone")),
    "running": ("…", "$primary", N_("at work; Esc stops it")),
}


class ToolUse(Static, can_focus=True):
    """One call of a tool.

    Attributes:
        message_id: 0 until it is known.
        raw: what it returned, cleaned.
        versions: none: a tool's result has no others.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,space", "fold", "Show or fold", show=False)]

    def __init__(self, title: str, text: str = "", *, state: str = "done", message_id: int = 0) -> None:
        self.title, self.raw = one_line(title), clean(text)
        self.state, self.message_id = state, message_id
        self.versions: tuple[int, ...] = ()
        self.open = False
        super().__init__(self._page(focused=False), classes="tool")

    def tell(self, state: str) -> None:
        """It has been undone meanwhile, or it has not."""
        self.state = state
        self.update(self._page(self.has_focus))

    def finish(self, text: str, state: str, message_id: int) -> None:
        """It has returned something."""
        self.raw, self.message_id = clean(text), message_id
        self.tell(state)

    def action_fold(self) -> None:
        """Show what it returned, or only its line."""
        self.open = not self.open and bool(self.raw)
        self.update(self._page(self.has_focus))

    def on_click(self) -> None:
        self.action_fold()

    def watch_has_focus(self, focused: bool) -> None:
        """Say what Enter does, or stop saying it."""
        super().watch_has_focus(focused)
        self.update(self._page(focused))

    def _page(self, focused: bool) -> Content:
        mark, style, word = _STATES.get(self.state, _STATES["done"])
        parts = [
            Content.styled("▾" if self.open else "▸", "$quiet"),
            Content(self.title),
            Content.styled(f"{mark} {_(word)}".rstrip(), style),
        ]
        if focused:
            lines = len(self.raw.splitlines())
            does = (
                _("Enter folds it")
                if self.open
                else ngettext("Enter shows {number} line", "Enter shows {number} lines", lines)
            )
            parts.append(Content.styled(does, "$secondary"))
        head = Content(" ").join(parts)
        return Content("\n").join([head, Content.styled(excerpt(self.raw), "$quiet")]) if self.open else head
