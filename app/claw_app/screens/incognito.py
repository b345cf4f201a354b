"""A chat that is never stored nor learned from: entering and leaving it. Part of the chat's screen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.screen import Screen

from claw_local.language import N_, _

if TYPE_CHECKING:
    from claw_local.assistant import Assistant

    from ..app import ClawApp
    from ..talk import LiveReply
    from ..widgets.composer import Composer
    from ..widgets.status_line import StatusLine
    from .chat_settings import Choices

INCOGNITO = N_(
    "Incognito. Nothing said here is stored or learned from, and it is gone when you leave this chat. "
    "The assistant is the one you know: its adapter and your hints are in use."
)


class IncognitoActions(Screen[None]):
    """Goes to an incognito chat; what was said in it is gone once it is left."""

    if TYPE_CHECKING:
        composer: Composer
        status: StatusLine
        live: LiveReply | None
        pending: Choices | None

        @property
        def claw(self) -> ClawApp: ...
        def change_draft(self, chat_id: int | None) -> None: ...
        async def open_chat(self, chat_id: int | None, message_id: int | None = None) -> None: ...

    private: Assistant | None = None
    """The assistant the open chat lives in, if it is incognito."""

    @property
    def incognito(self) -> bool:
        """Whether the open chat is one that is never stored."""
        return self.private is not None

    def action_new_incognito(self) -> None:
        """Begin a chat that is never stored nor learned from."""
        self.run_worker(self._go_incognito())
        self.composer.focus()

    async def _go_incognito(self) -> None:
        home = await self.claw.home()
        private = await self.claw.quick(home.incognito)
        if private is not None:
            self.change_draft(None)
            self._change_assistant(private)
            await self.open_chat(None)

    def leave_incognito(self, chat_id: int | None) -> None:
        """On the way to a stored chat: an incognito one that is open is gone."""
        if self.incognito:
            self.change_draft(chat_id)
            self._change_assistant(None)

    def _change_assistant(self, private: Assistant | None) -> None:
        left, self.private = self.private, private
        self.set_class(private is not None, "-incognito")
        self.composer.border_title = _("incognito") if private is not None else ""
        self.status.silent = private is not None
        if left is not None:
            self.pending = None
            self.run_worker(self._let_go(left))

    async def _let_go(self, private: Assistant) -> None:
        while (live := self.live) is not None and not live.ended:
            live.cancel()
            await asyncio.sleep(0.05)
        await self.claw.background.slow(private.close)
