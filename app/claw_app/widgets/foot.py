"""The lines at the bottom of a screen: what stands there gives way to a notification, so that nothing else has to."""

from __future__ import annotations

from typing import Any

from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets._toast import ToastRack


class Foot(Vertical):
    """As tall as what is in it, or as the notifications that lie over it if these are taller."""

    _wanted: int | None = None

    def on_mount(self) -> None:
        self.screen.screen_layout_refresh_signal.subscribe(self, self._make_room)

    def _make_room(self, _: Screen[Any]) -> None:
        if not self.is_attached:
            return
        # A query would leave them out: they are Textual's own.
        racks = (child for child in self.screen.children if isinstance(child, ToastRack) and child.display)
        rows = max((rack.outer_size.height for rack in racks), default=0)
        own = sum(child.outer_size.height for child in self.children if child.display)
        wanted = rows if rows > own else None
        if wanted != self._wanted:
            self._wanted = self.styles.min_height = wanted
