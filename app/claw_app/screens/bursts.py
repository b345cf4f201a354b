"""Text that is typed where letters are commands goes to the field. Part of the chat's screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, TextArea

from .. import burst
from ..widgets.bubbles import Bubble, Question
from ..widgets.chat_list import ChatList
from ..widgets.tool_use import ToolUse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..widgets.composer import Composer

CHANGES = {"good", "bad", "hint", "edit", "regenerate", "compare", "copy", "why", "learning_view"}
"""Actions with a letter that change, begin or cover something; so do all of the list's, `act(…)`."""


class Bursts(Screen[None]):
    """Tells writing from commands.

    A letter that changes something waits for a moment: if another follows, both are writing.
    """

    if TYPE_CHECKING:
        composer: Composer

    _burst: burst.Burst | None = None
    _held: tuple[events.Key, Widget | None, Timer] | None = None

    def sort_out(
        self, event: events.Event, do: Callable[[events.Key], Awaitable[None]]
    ) -> tuple[events.Key | None, bool]:
        """Take a key, a paste or a press of the mouse before anything else does.

        Args:
            do: does the command of a key that was kept, once no other has followed it.

        Returns:
            The key that was kept and is to be done first, if there is one, and whether the event is still to be dealt
            with: not, if it was text and is in the field now, or is kept itself.
        """
        if self.app.screen is not self or not self._is_letter(event):
            return self._release(), True
        assert isinstance(event, events.Key)
        character = event.character or ""
        self._burst = self._burst or burst.Burst()
        heard = self._burst.hear(character, self._kind(event), event.time)
        first = self._no_longer_held() if heard.release else None
        text = heard.text
        if character == "/" and not isinstance(self.focused, ChatList):
            text = text or character
        if text:
            self._release()
            self.set_focus(self.composer)
            self.composer.insert_here(text)
        elif heard.hold:
            self._hold(event, do)
        return first, not text and not heard.hold

    def _is_letter(self, event: events.Event) -> bool:
        where = self.focused
        return (
            isinstance(event, events.Key)
            and event.is_printable
            and isinstance(where, Bubble | Question | ToolUse | ChatList | None)
        )

    def _hold(self, event: events.Key, do: Callable[[events.Key], Awaitable[None]]) -> None:
        async def done() -> None:
            if (key := self._release()) is not None:
                await do(key)

        # The app's timer: it comes round in the order of the keys.
        self._held = (event, self.focused, self.app.set_timer(burst.BURST_S, done))

    def _release(self) -> events.Key | None:
        """The key that is kept, if any, and no more: what follows begins anew."""
        if self._burst is not None:
            self._burst.end()
        return self._no_longer_held()

    def _no_longer_held(self) -> events.Key | None:
        if self._held is None:
            return None
        (event, where, timer), self._held = self._held, None
        timer.stop()
        if self.app.screen is self and self.focused is where:
            return event
        # Where something else has the focus by now, it would do something that nobody meant: there it is a letter.
        elsewhere = self.app.focused
        if self.app.screen is not self and isinstance(elsewhere, Input | TextArea):
            elsewhere._forward_event(event)
        elif isinstance(self.focused, Input | TextArea) and self.focused is not self.composer:
            self.focused._forward_event(event)
        else:
            self.composer.insert_here(event.character or "")
        return None

    def _kind(self, event: events.Key) -> burst.Kind:
        bound = self.active_bindings.get(event.key)
        if event.character == "/" and not isinstance(self.focused, ChatList):
            return "nothing"
        if bound is None:
            # One to nine copy the blocks of code of a reply.
            return "changes" if event.key.isdigit() and isinstance(self.focused, Bubble) else "nothing"
        action = bound.binding.action.removeprefix("screen.")
        return "changes" if action in CHANGES or action.startswith("act(") else "harmless"
