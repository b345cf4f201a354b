"""Textual's command palette, closed at any moment. It must never know what the commands are."""

from __future__ import annotations

from typing import Any

from textual import command


class CommandPalette(command.CommandPalette):
    """Textual's looks for commands while it is open, and goes on with what it found when it has been closed meanwhile;
    what was its list is gone then, and the program would end."""

    def _refresh_command_list(self, command_list: command.CommandList, *found: Any, **more: Any) -> None:
        if command_list.is_attached and self.is_attached:
            super()._refresh_command_list(command_list, *found, **more)

    def _watch__list_visible(self) -> None:
        if self.query(command.CommandList):
            super()._watch__list_visible()
