"""Asks whether a tool may do something, and shows it: the diff, the command. It must never do it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from claw_local.language import _

from ..styles import OVER
from ..text import clean, one_line

if TYPE_CHECKING:
    from claw_local.tools.base import Prepared

Answer = tuple[Literal["once", "always", "no", "stop"], str]
SETTLE_S = 0.5
"""Keys in the first moment are none: who was typing when this appeared has agreed to nothing."""
LONGEST_TITLE = 160
"""Characters. The whole command stands below: a long one in the title would push it, and the keys, out of sight."""
_COLOURS = {"+": "$success", "-": "$error", "@": "$accent"}


class Approve(ModalScreen[Answer]):
    """Esc and n mean no; nothing happens without y or a. Arrows and page keys scroll what is shown."""

    CSS_PATH = OVER
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('once')", "Once", show=False),
        Binding("a", "answer('always')", "Always in this chat", show=False),
        Binding("n", "answer('no')", "No", show=False),
        Binding("w", "why", "No, and why", show=False),
        Binding("escape", "leave", "No, and stop", show=False),
    ]
    AUTO_FOCUS = "#preview"
    DEFAULT_CSS = """
    Approve .dialog { padding: 0 2; }
    Approve #why { margin: 0; height: 1; border: none; padding: 0; display: none; }
    Approve #preview { height: 1fr; margin: 1 0 0 0; }
    Approve #preview Static { width: 100%; height: auto; }
    """

    def __init__(self, prepared: Prepared, *, chat: str = "") -> None:
        super().__init__()
        self._prepared, self._chat = prepared, chat
        self._since = time.monotonic()

    def compose(self) -> ComposeResult:
        where = "   " + _("in the chat “{chat}”", chat=one_line(self._chat)) if self._chat else ""
        always = (
            _("this very command, always in this chat")
            if self._prepared.call.name == "run"
            else _("always in this chat")
        )
        with Vertical(classes="dialog large"):
            title = one_line(self._prepared.title)
            if len(title) > LONGEST_TITLE:
                title = title[: LONGEST_TITLE - 1] + "…"
            head = (_("May it {title}?", title=title), "bold"), (where, "$quiet")
            yield Static(Content.assemble(*head), id="approve-head")
            with VerticalScroll(id="preview", can_focus=True):
                yield Static(coloured(clean(self._prepared.preview)))
            yield Input(placeholder=_("Why not? Enter says it to the assistant, Esc goes back"), id="why", compact=True)
            keys = _("y once · a {always}\nn no · w no, and why · Esc no, and stop · arrows scroll", always=always)
            yield Static(keys, classes="dialog-keys")

    def on_mount(self) -> None:
        self._since = time.monotonic()

    @property
    def _settled(self) -> bool:
        return time.monotonic() - self._since >= SETTLE_S

    def action_answer(self, decision: Literal["once", "always", "no"]) -> None:
        """Give the answer."""
        if self._settled:
            self.dismiss((decision, ""))

    def action_why(self) -> None:
        """Say no, and why."""
        if self._settled:
            field = self.query_one("#why", Input)
            field.display = True
            field.focus()

    def action_leave(self) -> None:
        """From the reason back to the question; from there no, and nothing more is done."""
        field = self.query_one("#why", Input)
        if field.has_focus:
            field.display = False
            self.query_one("#preview").focus()
        elif self._settled:
            self.dismiss(("stop", ""))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(("no", event.value.strip()))


def coloured(preview: str) -> Content:
    """A diff with its colours; any other text as it is."""
    lines = preview.splitlines()
    if not (len(lines) > 1 and lines[0].startswith("--- ") and lines[1].startswith("+++ ")):
        return Content(preview)
    return Content("\n").join(
        Content.styled(line, _COLOURS.get(line[:1], "")) if line[:1] in _COLOURS else Content(line) for line in lines
    )
