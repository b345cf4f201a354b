"""Small dialogs: a question with yes or no, a line of text. They know nothing of what is asked."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from claw_local.language import _


class Confirm(ModalScreen[bool]):
    """Asks before something is lost. Esc and n mean no; y means yes; the focus starts on no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "dismiss(False)", "No", show=False),
        Binding("y", "dismiss(True)", "Yes", show=False),
        Binding("left,right", "app.focus_next", "Other button", show=False),
    ]

    def __init__(self, question: str, yes: str, no: str) -> None:
        super().__init__()
        self._question, self._yes, self._no = question, yes, no

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(self._question))
            with Horizontal(classes="buttons"):
                yield Button(_("{no} (Esc)", no=self._no), id="no", compact=True)
                yield Button(f"{self._yes} (y)", id="yes", variant="error", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")


class AskLine(ModalScreen[str | None]):
    """Asks for one line. Enter gives it, Esc gives None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel", show=False)]

    def __init__(self, question: str, value: str = "", placeholder: str = "", keys: str = "") -> None:
        super().__init__()
        self._question, self._value, self._placeholder = question, value, placeholder
        self._keys = keys or _("Enter saves · Esc cancels")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(self._question))
            yield Input(self._value, placeholder=self._placeholder, select_on_focus=False)
            yield Static(self._keys, classes="dialog-keys")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)
