"""Text that is typed where letters are commands goes to the field. Part of the chat's screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.screen import Screen

from ..burst import Burst, Kind
from ..widgets.bubbles import Bubble, Question
from ..widgets.chat_list import ChatList
from ..widgets.tool_use import ToolUse

if TYPE_CHECKING:
    from ..widgets.composer import Composer

CHANGES = {"good", "bad", "hint", "edit", "regenerate", "compare"}
"""Actions with a letter that change or begin something; so do all of the list's, `act(…)`."""


class Bursts(Screen[None]):
    """Tells writing from commands."""

    if TYPE_CHECKING:
        composer: Composer

    _burst: Burst | None = None

    def takes_as_text(self, event: events.Key) -> bool:
        """Put a key into the field, if it is part of a text, or the slash of a command. Whether it was."""
        if not isinstance(self.focused, Bubble | Question | ToolUse | ChatList | None) or not event.is_printable:
            return False
        character = event.character or ""
        self._burst = self._burst or Burst()
        text = self._burst.hear(character, self._kind(event), event.time)
        if character == "/" and not isinstance(self.focused, ChatList):
            text = text or character
        if not text:
            return False
        self.set_focus(self.composer)
        self.composer.insert_here(text)
        return True

    def _kind(self, event: events.Key) -> Kind:
        bound = self.active_bindings.get(event.key)
        if bound is None:
            # One to nine copy the blocks of code of a reply.
            return "harmless" if event.key.isdigit() and isinstance(self.focused, Bubble) else "nothing"
        action = bound.binding.action.removeprefix("screen.")
        return "changes" if action in CHANGES or action.startswith("act(") else "harmless"
