"""What is typed but not sent is kept for each chat. Part of the chat's screen; it must never know how it is kept."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import on
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import TextArea

from claw_local.errors import ClawError

from ..text import clean

if TYPE_CHECKING:
    from claw_local.assistant import Assistant

    from ..app import ClawApp
    from ..widgets.composer import Composer

PAUSE_S = 0.4
"""A pause in typing this long keeps the draft; so does `LONGEST_S` without a pause."""
LONGEST_S = 3.0


class Drafts(Screen[None]):
    """Keeps the draft on every pause in typing, and brings it back with its chat; the new chat has one too."""

    if TYPE_CHECKING:
        composer: Composer
        forgotten: int | None

        @property
        def claw(self) -> ClawApp: ...
        @property
        def incognito(self) -> bool: ...

    _draft_chat: int | None = None
    _draft_kept = ""
    _draft_stored = ""
    _draft_opened = ""
    _draft_due = True
    """Whether the store has not yet said what was typed in this chat before: until then nothing is written over it."""
    _draft_timer: Timer | None = None
    _draft_since = 0.0
    _going: tuple[int | None, str] | None = None
    """What is being sent, and from which chat's field: until it is a message, it is kept before what is typed there."""
    _just_sent: tuple[int | None, str] | None = None
    """The same, once it is a message, for a draft that is still being read."""

    @property
    def typed(self) -> bool:
        """Whether the person has typed anything since this chat was opened."""
        return self.composer.draft not in ("", self._draft_opened)

    def draft_is_due(self, chat_id: int | None) -> bool:
        """Whether the field does not stand for this chat yet."""
        return chat_id != self._draft_chat or self._draft_due

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

    def keep_draft(self, *, anew: bool = False) -> Any:
        """Keep what stands in the field, behind what is being sent from it. `anew`: also what was kept before, which
        may have been forgotten since.

        Returns something to await, for who must know that it is kept; None if there is nothing to do.
        """
        if self._draft_timer is not None:
            self._draft_timer.stop()
            self._draft_timer = None
        going = _of(self._going, self._draft_chat)
        text = _joined(going, self.composer.draft)
        home = self.claw.opened
        if home is None or self.incognito or self._draft_due or (text == self._draft_kept and not anew):
            return None
        self._draft_kept = text
        keeping = self.claw.background.quick(
            _keep, home, self._draft_chat, text, before=self._draft_stored, forgotten=self.forgotten
        )
        keeping.add_done_callback(partial(self._was_kept, self._draft_chat, text, going))
        return keeping

    def _was_kept(self, chat_id: int | None, text: str, going: str, keeping: asyncio.Future[str]) -> None:
        if keeping.cancelled() or keeping.exception() or self._draft_chat != chat_id:
            return
        self._draft_stored = kept = keeping.result()
        if kept != text:  # Part of it was forgotten meanwhile, which goes from the field, too.
            self._draft_kept = kept
            typed = self.composer.draft.removeprefix(_without(text, going))
            self.composer.restore(_without(kept, going) + typed)

    def change_draft(self, chat_id: int | None) -> None:
        """The person goes to another chat: what is typed stays with the one they leave."""
        self.keep_draft()
        home, left, typed = self.claw.opened, self._draft_chat, self.composer.draft
        if home is not None and self._draft_due and typed and not self.incognito:
            self.claw.background.quick(_add_to_draft, home, left, typed)
        if home is not None and left is not None and left != chat_id:
            self.claw.background.quick(home.history.leave_draft, left)
        self._draft_chat, self._draft_kept, self._draft_opened, self._draft_due = chat_id, "", "", True
        self._draft_stored = ""
        self.composer.restore("")

    def show_draft(self, chat_id: int | None, draft: str) -> None:
        """Put a chat's draft into the field; what has been typed since is not lost."""
        self._goes_from(chat_id)
        shown = _without(draft, _of(self._just_sent, chat_id) or _of(self._going, chat_id))
        self._draft_chat, self._draft_kept, self._draft_opened, self._draft_due = chat_id, draft, shown, False
        self._draft_stored, self._just_sent = draft, None
        typed = self.composer.draft
        if shown and shown != typed:
            self.composer.restore(_joined(shown, typed))
        elif typed or shown != draft:
            self._wait_for_pause()

    def draft_is_going(self, field: str) -> None:
        """What stood in the field is being sent."""
        self._going = (self._draft_chat, clean(self.composer.chips.message(field)))

    def _goes_from(self, chat_id: int | None) -> None:
        """The field stands for another chat than was known when it was sent."""
        if (going := _of(self._going, self._draft_chat)) and self._draft_due:
            self._going = (chat_id, going)

    @property
    def keeps_what_is_going(self) -> bool:
        """Whether what is being sent is kept as the draft of a chat that the person has left since."""
        return self._going is not None and self._going[0] != self._draft_chat

    def draft_did_not_go(self) -> None:
        """Sending has ended; what has not become a message is in the field again, or in its chat's draft."""
        if self._going is not None:
            self._going = None
            self.keep_draft()

    def draft_was_sent(self, origin: int | None, chat_id: int, *, here: bool) -> None:
        """What was typed in `origin` is now a message of `chat_id`; `here`: that chat is still the open one."""
        home, sent = self.claw.opened, self._going[1] if self._going is not None else ""
        self._going = None
        if self.incognito or home is None:
            return
        if here:
            self._draft_chat, self._draft_opened = chat_id, ""
            if origin == chat_id:
                self.keep_draft()
                return
            self._draft_kept = self._draft_stored = ""
            self.keep_draft()
            self.claw.background.quick(home.history.set_draft, origin, "")
        elif self._draft_chat != origin:
            self.claw.background.quick(_take_from_draft, home, origin, sent, chat_id)
        elif self._draft_due:
            self._just_sent = (origin, sent)
        else:
            self.keep_draft(anew=True)

    def draft_came_back(self, *, due: bool = False) -> None:
        """The chat that began with it is gone again: what is in the field is the new chat's. `due`: what was typed for
        that before will be shown with it."""
        if self._going is not None:
            self._going = (None, self._going[1])
        self._draft_chat, self._draft_kept, self._draft_stored, self._draft_due = None, "", "", due

    def draft_was_forgotten(self) -> None:
        """The chat is gone, and what the store had of the field with it: that goes; what was typed since stays."""
        typed = self.composer.draft
        if self._draft_stored and typed.startswith(self._draft_stored):
            self.composer.restore(typed.removeprefix(self._draft_stored))


def _of(sent: tuple[int | None, str] | None, chat_id: int | None) -> str:
    """What was sent, if it was from this chat's field."""
    return sent[1] if sent is not None and sent[0] == chat_id else ""


def _joined(draft: str, typed: str) -> str:
    return f"{draft}\n{typed}" if draft and typed else draft or typed


def _keep(home: Assistant, chat_id: int | None, text: str, *, before: str, forgotten: int | None) -> str:
    """Keep a draft of which the store had `before`, unless that was forgotten by another program since somebody looked
    (`forgotten` times then): only what was typed since is kept. Gives what was. Runs where the store is asked."""
    if forgotten is not None and home.forgetting.count() != forgotten:
        left = home.history.draft(chat_id)
        if left != before and text.startswith(before):
            text = left + text[len(before) :]
    home.history.set_draft(chat_id, text)
    return text


def _without(draft: str, sent: str) -> str:
    """A draft without what was sent, which it begins with."""
    return (
        draft.removeprefix(sent).removeprefix("\n")
        if sent and (draft == sent or draft.startswith(f"{sent}\n"))
        else draft
    )


def _take_from_draft(home: Assistant, chat_id: int | None, sent: str, new_chat: int) -> None:
    """This was sent from a chat that is shown no more; what was typed behind it stays there. What was typed in a chat
    before there was one belongs to the one there is now (`new_chat`). Runs where the store is asked."""
    left = _without(home.history.draft(chat_id), sent)
    if chat_id is None and left:
        home.history.set_draft(new_chat, left)
        home.history.leave_draft(new_chat)
        left = ""
    home.history.set_draft(chat_id, left)
    if chat_id is not None:
        home.history.leave_draft(chat_id)


def _add_to_draft(home: Assistant, chat_id: int | None, typed: str) -> None:
    """Runs where the store is asked."""
    home.history.set_draft(chat_id, _joined(home.history.draft(chat_id), typed))
