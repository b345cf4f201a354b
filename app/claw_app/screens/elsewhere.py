"""What another window or program adds to the chats while the app is open: the list, the title and the open chat show
it. Part of the chat's screen; it must never touch what is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from claw_local.language import N_, _
from claw_local.store import watching

from ..branch import Branch
from ..widgets.bubbles import Bubble, Question
from ..widgets.editor import Editor
from ..widgets.tool_use import ToolUse

if TYPE_CHECKING:
    import asyncio

    from ..app import ClawApp
    from ..widgets.transcript import Transcript

OTHER_VERSION = N_(
    "Another program went on with another version of this chat, which is shown now. ← and → on a message marked "
    "◂ 1/2 ▸ change back."
)


class Elsewhere(Screen[None]):
    """Looks only when the database says that it was written to."""

    if TYPE_CHECKING:
        transcript: Transcript
        chat_id: int | None
        sending: bool
        _ready: asyncio.Event

        @property
        def claw(self) -> ClawApp: ...
        @property
        def incognito(self) -> bool: ...
        async def refresh_chats(self) -> None: ...

    renewing: asyncio.Lock
    """Held while what is drawn is brought up to date, so that it is not done from two sides at once."""
    not_drawn: set[int]
    """Replies that failed before a word came: a notice stands for each."""
    _version: int | None = None
    _stamp: tuple[int, tuple[Any, ...]] | None = None
    _behind = False
    caught_up = 0
    """How often what came from elsewhere was drawn."""

    async def see_elsewhere(self) -> None:
        """Look whether anything was written since the last time; if so, show it. Raises ClawError."""
        home = await self.claw.home()
        version = await self.claw.watcher.quick(watching.version, home.store.database)
        if version != self._version:
            if await self.claw.watcher.quick(home.restored):  # Since it was last looked for: that comes first.
                return
            self._version, self._behind = version, True
            if not self.claw.leaving:
                await self.refresh_chats()
        busy = self.sending or self.claw.screen is not self or bool(self.query(Editor))
        if self._behind and not busy and not self.claw.leaving:
            self._behind = False
            await self.catch_up()

    def drawn_anew(self, caught_up: int) -> None:
        """The open chat was drawn as it was when it had been caught up so many times."""
        if caught_up != self.caught_up:
            self._stamp, self._behind = None, True

    async def catch_up(self) -> None:
        """Show what has come into the open chat; what is being read stays where it is. Raises ClawError."""
        chat_id = self.chat_id
        if chat_id is None or self.incognito or not self._ready.is_set():
            return
        async with self.renewing:
            await self._catch_up(chat_id)

    async def _catch_up(self, chat_id: int) -> None:
        home = await self.claw.home()
        stamp = await self.claw.background.quick(watching.chat_stamp, home.store.database, chat_id)
        if not stamp or (chat_id, stamp) == self._stamp:
            return
        branch = await self.claw.background.quick(Branch, home, chat_id, leave_out=self.not_drawn, stored=True)
        restored = await self.claw.background.quick(home.restored)  # Then the same numbers mean others.
        if restored or chat_id != self.chat_id:
            return
        if isinstance(self.focused, (Bubble, Question, ToolUse)):
            self.transcript.anchor(False)
        if self.transcript.leaves(branch):
            self.claw.say(_(OTHER_VERSION), timeout=8, topic="elsewhere")
        if await self.transcript.renew(branch):
            self._stamp = (chat_id, stamp)
            self.caught_up += 1
        else:
            self._behind = True
