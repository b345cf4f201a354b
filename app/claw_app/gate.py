"""Keys that come right behind one that opens a page or moves the focus: they wait until that is there, so that they go
where the person sees themselves. It must never know what the keys do."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.worker import Worker

if TYPE_CHECKING:
    from typing import Any

    from .app import ClawApp
    from .widgets.composer import Composer

LONGEST_S, ENTER_S = 5.0, 0.5
"""Longest wait for what a key opens; and for what Enter does on a page, where it may as well begin something long."""
_STEP_S = 0.005
_HOP_S = 3.0
_STAYS = {"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "backspace", "delete"}
"""Keys that move only within a page."""
_STEPS = {"up", "down", "j", "k"}
"""Keys that go from message to message: the next one is meant for the message they go to."""


@dataclass(frozen=True)
class Before:
    """How it stood before a key."""

    screen: Screen[Any]
    path: tuple[MessagePump, ...]
    workers: frozenset[Worker[Any]]
    longest_s: float
    field: Composer | None = None
    """The field, where the key is Enter in it: it may be a slash command."""


class Gate:
    """Shut behind a key that may open or move something, until it has."""

    def __init__(self, app: ClawApp) -> None:
        self._app = app
        self._waiting: list[events.Key | events.Paste] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def shut(self) -> bool:
        """Whether keys have to wait."""
        return self._waiting is not None

    def keep(self, event: events.Key | events.Paste) -> None:
        """It waits until the gate opens."""
        if self._waiting is not None:
            self._waiting.append(event)

    def look(self, key: events.Key) -> Before | None:
        """How it stands before this key; None if nothing can open at it."""
        # Imported here: the first paint needs none of it.
        from textual.widgets import Input, TextArea

        from .commands import MOVING_KEYS
        from .widgets.bubbles import Bubble, Question
        from .widgets.chat_list import ChatList, Filter
        from .widgets.composer import Composer
        from .widgets.tool_use import ToolUse

        app, focused = self._app, self._app.focused
        typing = isinstance(focused, (Input, TextArea))
        if typing and key.is_printable:
            return None
        if app.screen is not app.main:
            moves = key.key not in _STAYS and not (typing and key.key == "enter" and isinstance(focused, TextArea))
        else:
            steps = key.key in _STEPS and isinstance(focused, (Bubble, Question, ToolUse))
            moves = steps or key.key in MOVING_KEYS
            moves = moves or (key.key == "enter" and isinstance(focused, (ChatList, Filter)))
        field = focused if key.key == "enter" and isinstance(focused, Composer) and app.screen is app.main else None
        if not moves and field is None:
            return None
        path = focused.ancestors_with_self if focused is not None else [app.screen, app]
        short = key.key == "enter" and app.screen is not app.main
        return Before(app.screen, tuple(path), frozenset(app.workers), ENTER_S if short else LONGEST_S, field)

    def close(self, before: Before) -> None:
        """What comes from now on waits until the key has done its work."""
        self._waiting = []
        self._task = asyncio.create_task(self._open_in_time(before))

    async def _open_in_time(self, before: Before) -> None:
        try:
            for hop in before.path:  # The key goes this way.
                await _worked_off(hop)
            if before.field is not None:
                if not before.field.moved:
                    return
                for hop in (*before.path, before.screen):  # What was entered goes it too, and begins behind that.
                    await _worked_off(hop)
            begun = [one for one in self._app.workers if one not in before.workers and one.group == "default"]
            until = time.monotonic() + before.longest_s
            while not self._is_there(before, begun) and time.monotonic() < until:
                await asyncio.sleep(_STEP_S)
            await _worked_off(self._app.screen)
        finally:
            # Later: a focus that was asked for comes first.
            if not self._app.call_later(self._open):
                self._waiting = None

    def _is_there(self, before: Before, begun: list[Worker[Any]]) -> bool:
        if not self._app.is_running or self._app.leaving:
            return True
        screen = self._app.screen
        if screen is before.screen:
            return all(one.is_finished for one in begun)
        return screen._mounted_event.is_set()

    async def _open(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        for event in waiting:
            await self._app.on_event(event)


async def _worked_off(pump: MessagePump) -> None:
    """Wait until it has dealt with what it was sent so far."""
    done = asyncio.Event()
    if pump.is_running and pump.call_later(done.set):
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(done.wait(), _HOP_S)
