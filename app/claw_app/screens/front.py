"""What is painted first: the frame of the chat, while the chat itself is still being put together.

It must import nothing of the chat before it is on the screen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from claw_local.language import _

from ..words import BROAD, PLACEHOLDER, SENDS, WIDE


class Front(Screen[None]):
    """Once it is seen, the screen that `make` makes comes over it. What is typed meanwhile is kept by the app."""

    DEFAULT_CSS = """
    Front { background: $background; }
    Front #front-top { height: 1; padding: 0 1; background: $surface; text-style: bold; }
    Front #front-room { height: 1fr; }
    Front #front-field {
        height: 3; margin: 0 1; padding: 0 1; border: round $primary; border-subtitle-color: $quiet; color: $quiet;
    }
    Front.-wide #front-field { margin: 0 1 0 29; }
    Front.-broad #front-field { margin: 0 1 0 39; }
    Front.-tiny #front-top, Front.-tiny #front-status { display: none; }
    Front.-tiny #front-field { border: none; margin: 0; height: 1; padding: 0 1; }
    Front #front-status { height: 2; padding: 0 1; color: $quiet; }
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide"), (BROAD, "-broad")]  # noqa: RUF012

    def __init__(self, make: Callable[[], Screen[Any]]) -> None:
        super().__init__()
        self._make = make

    def compose(self) -> ComposeResult:
        yield Static(_("New chat"), id="front-top")
        yield Static(id="front-room")
        field = Static(_(PLACEHOLDER), id="front-field")
        field.border_subtitle = _(SENDS)
        yield field
        yield Static(_("starting …"), id="front-status")

    def on_mount(self) -> None:
        self.call_after_refresh(self._go_on)

    def _go_on(self) -> None:
        self.app.push_screen(self._make())
