"""A gate's report over the learning screen: the figures in plain words, and answers before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from claw_local.language import _

from ..report import examples, sentences
from ..styles import LEARNED
from ..text import excerpt


class Report(ModalScreen[None]):
    """Esc closes it; the arrows scroll."""

    CSS_PATH = LEARNED
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "Close", show=False)]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012

    def __init__(self, title: str, reason: str, gate: Mapping[str, Any]) -> None:
        super().__init__()
        self._title, self._reason, self._gate = title, reason, gate

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog large report"):
            yield Static(Content.assemble((self._title, "bold $primary"), ("   " + _("Esc closes"), "$quiet")))
            with VerticalScroll():
                yield Static(Content(self._reason or _("It left no reason.")), classes="reason")
                lines = sentences(self._gate)
                if lines:
                    yield Static(Content("\n").join(Content("· ") + line for line in lines), classes="figures")
                for question, before, after in examples(self._gate):
                    yield Static(Content.styled(question, "bold"), classes="example")
                    with Horizontal(classes="pair"):
                        yield Static(_answer(_("before"), before), classes="answer")
                        yield Static(_answer(_("after"), after), classes="answer -after")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


def _answer(name: str, text: str) -> Content:
    return Content.assemble((f"{name}\n", "$quiet"), excerpt(text.strip()) or _("(empty)"))
