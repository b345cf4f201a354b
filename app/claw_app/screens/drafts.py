"""What is typed but not sent is kept for each chat. Part of the chat's screen; it must never know how it is kept."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from textual import on
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import TextArea

from claw_local.errors import ClawError

if TYPE_CHECKING:
    from ..app import ClawApp
    from ..talk import LiveReply
    from ..widgets.composer import Composer

PAUSE_S = 0.4
"""A pause in typing this long keeps the draft; so does `LONGEST_S` without a pause."""
LONGEST_S = 3.0


class Drafts(Screen[None]):
    """Keeps the draft on every pause in typing, and brings it back with its chat; the new chat has one too."""

    if TYPE_CHECKING:
        composer: Composer
        live: LiveReply | None
        sending: bool

        @property
        def claw(self) -> ClawApp: ...
        @property
        def incognito(self) -> bool: ...

    _draft_chat: int | None = None
    _draft_kept = ""
    _draft_opened = ""
    _draft_timer: Timer | None = None
    _draft_since = 0.0

    @property
    def typed(self) -> bool:
        """Whether the person has typed anything since this chat was opened."""
        return self.composer.draft not in ("", self._draft_opened)

    @property
    def kept_draft(self) -> str:
        """What was kept last of what stands in the field."""
        return self._draft_kept

    @on(TextArea.Changed, "#composer")
    def _wait_for_pause(self) -> None:
        now = time.monotonic()
        if self._draft_timer is not None:
            self._draft_timer.stop()
        else:
            self._draft_since = now
        left = self._draft_since + LONGEST_S - now
        self._draft_timer = self.set_timer(max(0.01, min(PAUSE_S, left)), self._keep_in_pause)

    async def _keep_in_pause(self) -> None:
        """A draft that cannot be kept is tried again at the next pause: it still stands in the field."""
        chat_id, before = self._draft_chat, self._draft_kept
        try:
            kept = self.keep_draft()
            if kept is not None:
                await kept
        except ClawError as error:
            if self._draft_chat == chat_id:
                self._draft_kept = before
            self.claw.fail(error)

    def keep_draft(self) -> Any:
        """Keep what stands in the field. What is being sent is kept until it is stored as a message.

        Returns something to await, for who must know that it is kept; None if there is nothing to do.
        """
        if self._draft_timer is not None:
            self._draft_timer.stop()
            self._draft_timer = None
        on_its_way = self.sending and (self.live is None or not self.live.started.done())
        text = self.composer.draft
        home = self.claw.opened
        if home is None or self.incognito or on_its_way or text == self._draft_kept:
            return None
        self._draft_kept = text
        return self.claw.background.quick(home.history.set_draft, self._draft_chat, text)

    def change_draft(self, chat_id: int | None) -> None:
        """The person goes to another chat: what is typed stays with the one they leave."""
        self.keep_draft()
        home, left = self.claw.opened, self._draft_chat
        if home is not None and left is not None and left != chat_id:
            self.claw.background.quick(home.history.leave_draft, left)
        self._draft_chat, self._draft_kept, self._draft_opened = chat_id, "", ""
        self.composer.restore("")

    def show_draft(self, chat_id: int | None, draft: str) -> None:
        """Put a chat's draft into the field; what has been typed since is not lost."""
        self._draft_chat, self._draft_kept, self._draft_opened = chat_id, draft, draft
        typed = self.composer.draft
        if draft and draft != typed:
            self.composer.restore(f"{draft}\n{typed}" if typed else draft)

    def draft_was_sent(self, origin: int | None, chat_id: int, *, here: bool) -> None:
        """What was typed in `origin` is now a message of `chat_id`; `here`: that chat is still the open one."""
        home = self.claw.opened
        if self.incognito or home is None:
            return
        if here:
            self._draft_chat, self._draft_opened = chat_id, ""
            if origin == chat_id:
                self.keep_draft()
                return
            self._draft_kept = ""
            self.keep_draft()
        if self._draft_chat != origin:
            self.claw.background.quick(home.history.set_draft, origin, "")

    def draft_came_back(self) -> None:
        """The chat that began with it is gone again: what is in the field is the new chat's."""
        self._draft_chat, self._draft_kept = None, ""

    def draft_was_forgotten(self, kept: str, left: str) -> None:
        """Drafts were forgotten: `kept` was in the store before, `left` is there now. What was typed since is no part
        of it, and stays."""
        typed = self.composer.draft
        rest = typed.removeprefix(kept)
        if kept != left and (rest != typed or not typed):
            self.composer.restore(left + rest)
