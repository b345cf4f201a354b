"""Putting chats away - deleting, archiving - and bringing them back. Part of the chat's screen."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual import on
from textual.screen import Screen

from claw_local.language import _

from ..widgets.chat_list import ChatList
from ..widgets.undo_line import SHOWN_S, UndoLine

if TYPE_CHECKING:
    from textual.worker import Worker

    from claw_local.assistant import Assistant

    from ..app import ClawApp
    from ..talk import LiveReply

MOST_S = 5.0
"""Longest wait for a chat that is just being put away."""


@dataclass(frozen=True)
class PutAway:
    """A chat that was deleted or archived, and what it was called."""

    chat_id: int
    title: str
    archived: bool = False
    at: float = field(default_factory=time.monotonic)

    @property
    def undoable_s(self) -> float:
        """How long it can still be undone: a deleted chat always, an archived one as long as the line says so."""
        return SHOWN_S - (time.monotonic() - self.at) if self.archived else SHOWN_S


class UndoActions(Screen[None]):
    """Puts chats away, and brings back the last one first."""

    if TYPE_CHECKING:
        chats: ChatList
        chat_id: int | None
        live: LiveReply | None

        @property
        def claw(self) -> ClawApp: ...
        @property
        def incognito(self) -> bool: ...
        async def go_to(self, chat_id: int | None, message_id: int | None = None) -> None: ...
        async def refresh_chats(self) -> None: ...
        async def refresh_status(self) -> None: ...

    being_put_away: Worker[None] | None = None
    """What is putting a chat away, or did so last."""
    put_away: list[PutAway]
    """Chats put away since the app was opened; the last one comes back first."""

    def last_away(self) -> PutAway | None:
        """The chat that would come back now."""
        return next((one for one in reversed(self.put_away) if one.undoable_s > 0), None)

    @property
    def may_come_back(self) -> bool:
        """Whether there is a chat to bring back, or is about to be."""
        return self.last_away() is not None or self._is_being_put_away

    @property
    def _is_being_put_away(self) -> bool:
        return self.being_put_away is not None and not self.being_put_away.is_finished

    async def _archive(self, chat_id: int) -> None:
        home = await self.claw.home()
        title = self.chats.title_of(chat_id)
        if self.chats.is_archived(chat_id):
            await self._unarchive(chat_id, title)
        elif await self.claw.quick(home.history.archive, chat_id) is not None:
            self.put_away.append(PutAway(chat_id, title, archived=True))
            self._tell_of_last()
            self.claw.say(_("“{title}” is archived: at the end of the list, and still found by search.", title=title))
        await self.refresh_chats()

    async def _unarchive(self, chat_id: int, title: str) -> None:
        home = await self.claw.home()
        if await self.claw.quick(home.history.unarchive, chat_id) is None:
            return
        self.put_away = [one for one in self.put_away if not (one.archived and one.chat_id == chat_id)]
        self._tell_of_last()
        self.claw.say(_("“{title}” is back in the list.", title=title))

    def _tell_of_last(self) -> None:
        """The line offers to bring back what would be undone."""
        last = self.last_away()
        if last is None:
            self.query_one(UndoLine).tell("")
        else:
            self.query_one(UndoLine).tell(last.title, archived=last.archived, for_s=last.undoable_s)

    async def _delete(self, chat_id: int) -> None:
        home = await self.claw.home()
        title = self.chats.title_of(chat_id)
        while self.live is not None and self.live.chat_id == chat_id and not self.incognito:
            self.live.cancel()
            await asyncio.sleep(0.05)
        try:
            await self.claw.background.quick(home.history.delete, chat_id)
        except Exception as error:
            self.claw.fail(error)
            return
        self.put_away.append(PutAway(chat_id, title))
        self._tell_of_last()
        if chat_id == self.chat_id and not self.incognito:
            await self.go_to(None)
        else:
            await self.refresh_chats()
        await self.refresh_status()

    async def action_undo_delete(self) -> None:
        """Bring back the chat deleted last, or one that was archived a moment ago."""
        until = time.monotonic() + MOST_S
        while self._is_being_put_away and time.monotonic() < until:
            await asyncio.sleep(0.02)
        last = self.last_away()
        if last is None:
            self.claw.say(_("There is no deleted chat to bring back."))
            return
        self.put_away.remove(last)
        if last.archived:
            await self._unarchive(last.chat_id, last.title)
            await self.refresh_chats()
            return
        home = await self.claw.home()
        try:
            await self.claw.background.quick(home.history.undelete, last.chat_id)
        except Exception as error:
            self.claw.fail(error)
            return
        self._tell_of_last()
        await self.go_to(last.chat_id)
        await self.refresh_status()
        self.claw.say(_("“{title}” is back.", title=last.title))

    async def action_undo_delete_key(self) -> None:
        """Ctrl+Z, where it does not undo what was typed: see `check_action` of the screen."""
        await self.action_undo_delete()

    @on(UndoLine.Pressed)
    async def _undo_pressed(self) -> None:
        await self.action_undo_delete()

    def forget_undo(self) -> None:
        """Nothing that was put away can be brought back any more."""
        self.put_away.clear()
        self._tell_of_last()

    async def purge_deleted(self) -> None:
        """The person leaves: what they deleted is removed for good."""
        home = self.claw.opened
        gone, self.put_away = self.put_away, []
        if home is not None:
            for one in gone:
                if not one.archived:
                    await self.claw.quick(_purge, home, one.chat_id)


def _purge(assistant: Assistant, chat_id: int) -> None:
    """Remove a chat for good, unless it was brought back in another window."""
    if assistant.chat(chat_id).deleted_at:
        assistant.history.delete_for_good(chat_id)
