"""Small dialogs: a question with two or more answers, a line of text. They know nothing of what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
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


class Choose(ModalScreen[str]):
    """Asks which of several things to do. Esc gives "", which does none of them; the focus starts there.

    Args:
        ways: key, what its button says, and what it does; the last one is marked as the one that loses something.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss('')", "None of them", show=False),
        Binding("left", "app.focus_previous", "Button before", show=False),
        Binding("right", "app.focus_next", "Next button", show=False),
    ]

    def __init__(self, question: str, ways: Sequence[tuple[str, str, str]], none: str) -> None:
        super().__init__()
        self._question, self._ways, self._none = question, ways, none

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            lines = [Content(self._question)]
            lines += [Content.assemble((f"{name} ", "bold"), does) for __, name, does in self._ways]
            yield Static(Content("\n\n").join(lines))
            with Horizontal(classes="buttons"):
                yield Button(_("{no} (Esc)", no=self._none), id="none", compact=True)
                for key, name, __ in self._ways:
                    last = key == self._ways[-1][0]
                    yield Button(f"{name} ({key})", id=key, variant="error" if last else "default", compact=True)

    def on_key(self, event: events.Key) -> None:
        if event.key in [key for key, *__ in self._ways]:
            event.stop()
            self.dismiss(event.key)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss("" if event.button.id == "none" else str(event.button.id))


class AskLine(ModalScreen[str | None]):
    """Asks for one line. Enter gives it, Esc gives None. `select`: typing replaces what stands there."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel", show=False)]

    def __init__(
        self, question: str, value: str = "", placeholder: str = "", keys: str = "", *, select: bool = False
    ) -> None:
        super().__init__()
        self._question, self._value, self._placeholder = question, value, placeholder
        self._select = select
        self._keys = keys or _("Enter saves · Esc cancels")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Content(self._question))
            yield Input(self._value, placeholder=self._placeholder, select_on_focus=self._select)
            yield Static(self._keys, classes="dialog-keys")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)
