"""What a person can say about a reply: thumbs, hints, their own version. Part of the chat's screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from textual import on
from textual.screen import Screen

from claw_local.language import N_, _

from ..text import one_line
from ..widgets.bubbles import Bubble
from ..words import BUSY, EXAMPLE
from .ask import AskLine, Confirm

if TYPE_CHECKING:
    from claw_local.assistant import Assistant
    from claw_local.store import Hint

    from ..app import ClawApp
    from ..widgets.transcript import Transcript

_BEGINNING = 60
_THUMBS = {"good": "▲", "bad": "▼"}
_EVERYWHERE = N_("The hint holds in every chat from your next message on; Ctrl+T, 2 and Space switch it off.")
_ALONE = N_("The hint holds in this chat only, from your next message on: nothing of it is kept.")
_HERE = N_("The hint stays with this reply: it is about what it says, not about how replies should be.")
_ALSO_BAD = N_("A hint also marks the reply as bad (▼).")
_NEVER = N_("This reply never teaches.")
_COPIED = N_("It teaches nothing: this reply is a copy.")
_IMPORTED = N_("It teaches nothing: this reply was imported.")
_SILENT = N_("It teaches nothing: this chat is set not to teach (F6).")
_OFF = N_(
    "It teaches nothing yet: this reply was written while learning was off. `claw-local learn on --past` lets it teach."
)
_LATER = N_("Learning is off: it teaches once that is on (Ctrl+L).")
_OPENED = ("http://", "https://", "mailto:")


class ReplyActions(Screen[None]):
    """The actions on the reply in focus, or else the last one."""

    if TYPE_CHECKING:
        transcript: Transcript

        @property
        def claw(self) -> ClawApp: ...
        async def refresh_status(self) -> None: ...

    def _reply(self) -> Bubble | None:
        bubble = self.transcript.chosen()
        if bubble is None:
            self.claw.say(_("There is no reply here yet."))
        elif bubble.state == "streaming":
            self.claw.say(_("This reply is still being written. Esc stops it."), topic=BUSY)
            return None
        return bubble

    async def _give(self, bubble: Bubble, verdict: Literal["good", "bad"] | None, **said: Any) -> bool:
        assistant = await self.claw.assistant()
        if await self.claw.quick(assistant.feedback, bubble.message_id, verdict, **said) is None:
            return False
        await self._mark_anew(bubble)
        return True

    async def _mark_anew(self, bubble: Bubble) -> None:
        """Show what is known of the reply now."""
        assistant = await self.claw.assistant()
        signals = await self.claw.quick(assistant.signals, [bubble.message_id])
        bubble.mark((signals or {}).get(bubble.message_id, ()))
        await self.refresh_status()

    async def action_good(self) -> None:
        """Mark the reply as good; where it is marked so, take that back."""
        await self._mark("good", _("Marked as good."), _("Marked as good, in this chat only: nothing of it is kept."))

    async def action_bad(self) -> None:
        """Mark the reply as bad; where it is marked so, take that back."""
        said = _("Marked as bad. F4 says what it should have been like.")
        await self._mark("bad", said, _("Marked as bad, in this chat only: nothing of it is kept."))

    async def _mark(self, verdict: Literal["good", "bad"], said: str, alone: str) -> None:
        bubble = self._reply()
        if bubble is None:
            return
        if bubble.thumb == _THUMBS[verdict]:
            if bubble.thumb_hint:
                self.run_worker(self._take_back_all(bubble))
            else:
                await self._take_back(bubble)
        elif await self._give(bubble, verdict):
            more = await self._of_no_effect(bubble)
            said = alone if self.claw.main.incognito else said
            self.claw.say(f"{said}{more}", timeout=8 if more else 4, topic="mark")

    async def _take_back_all(self, bubble: Bubble) -> None:
        question = _("Take back your mark {mark}, and the hint that came with it?", mark=bubble.thumb)
        question += f"\n“{_beginning(bubble.thumb_hint)}”"
        if await self.app.push_screen_wait(Confirm(question, _("Take back"), _("Keep them"))):
            await self._take_back(bubble)

    async def _take_back(self, bubble: Bubble) -> None:
        assistant = await self.claw.assistant()
        taken = await self.claw.quick(assistant.take_back, bubble.message_id, ("thumb",))
        if taken is None:
            return
        await self._mark_anew(bubble)
        said = [_("Your mark is taken back, and the hint with it.") if taken.hints else _("Your mark is taken back.")]
        if taken.learned_by:
            adapters = ", ".join(map(str, taken.learned_by))
            said.append(_("What was learned from it before stays (adapters {adapters}).", adapters=adapters))
        self.claw.say(" ".join(said), timeout=8 if len(said) > 1 else 4, topic="mark")

    async def _of_no_effect(self, bubble: Bubble) -> str:
        """A sentence more, where a mark trains nothing, or nothing yet: which reply it is that does not teach."""
        if self.claw.main.incognito:
            return ""
        assistant = await self.claw.assistant()
        why = await self.claw.quick(assistant.why, bubble.message_id)
        if why is None or why.by != "person":
            words = await self.claw.quick(_no_effect, await self.claw.home(), bubble.message_id)
            return f" {_(words)}" if words else ""
        own = [_("A mark on your own text teaches nothing.")]
        return " " + " ".join(own if why.example_of is None else [*own, _(EXAMPLE[why.example_of])])

    def action_hint(self) -> None:
        """Say what the reply should have been like."""
        bubble = self._reply()
        if bubble is not None:
            self.run_worker(self._hint(bubble))

    async def _hint(self, bubble: Bubble) -> None:
        assistant = await self.claw.assistant()
        given = await self.claw.quick(assistant.store.hints.of_message, bubble.message_id) if bubble.hint else None
        old = next((one for one in given or () if one_line(one.text) == bubble.hint and one.state != "dropped"), None)
        alone = _("Enter gives it, in this chat only · Esc cancels")
        keys = alone if self.claw.main.incognito else _("Enter keeps it, for every chat · Esc cancels")
        marks = _("Your mark {mark} on it stays.", mark=bubble.thumb) if bubble.thumb else _(_ALSO_BAD)
        hint = await self.app.push_screen_wait(
            AskLine(
                _("What should this reply have been like?") + f"\n“{_beginning(bubble.raw)}”\n{marks}",
                bubble.hint if old is not None else "",
                _("for example: at most two sentences, no lists"),
                _("Enter changes the hint you gave · Esc cancels") if old is not None else keys,
                select=True,
            )
        )
        if hint is not None:
            await self.keep_hint(bubble, hint, instead_of=old)

    async def keep_hint(self, bubble: Bubble, hint: str, *, instead_of: Hint | None = None) -> None:
        """Keep what a reply should have been like, and say where it holds."""
        assistant = await self.claw.assistant()
        if instead_of is None:
            if not await self._give(bubble, None, hint=hint):
                return
        elif await self.claw.quick(assistant.hints.change, instead_of.id, hint) is None:
            return
        else:
            await self._mark_anew(bubble)
        given = await self.claw.quick(assistant.store.hints.of_message, bubble.message_id)
        everywhere = any(one.scope != "turn" for one in given or () if one_line(one.text) == one_line(hint))
        wide = _ALONE if self.claw.main.incognito else _EVERYWHERE
        self.claw.say(_(wide if everywhere else _HERE), timeout=8)

    def action_copy(self) -> None:
        """Copy the message in focus, or else the last reply."""
        question = self.transcript.chosen_question()
        message = question if question is not None else self._reply()
        if message is None:
            return
        self.app.copy_to_clipboard(message.raw)
        codes = message.body.codes if isinstance(message, Bubble) else []
        said = [_("The question is copied.") if question is not None else _("The reply is copied.")]
        if len(codes) == 1:
            said.append(_("1 copies the code alone."))
        elif codes:
            said.append(_("1–{last}: one block of code.", last=min(9, len(codes))))
        self.claw.say(" ".join(said))

    def action_copy_text(self) -> None:
        """Ctrl+C: copy what was selected with the mouse, if something was."""
        super().action_copy_text()
        self.claw.say(_("Copied."), topic="copied")

    @on(Bubble.CodeCopied)
    def _code(self, event: Bubble.CodeCopied) -> None:
        if event.code is None:
            self.claw.say(_("This reply has no block of code number {number}.", number=event.number))
            return
        self.app.copy_to_clipboard(event.code)
        self.claw.say(_("The code is copied."))

    def action_why(self) -> None:
        """Show what stood behind the reply."""
        bubble = self._reply()
        if bubble is not None:
            self.run_worker(self._why(bubble))

    async def _why(self, bubble: Bubble) -> None:
        from .why import WhyScreen

        assistant = await self.claw.assistant()
        why = await self.claw.quick(assistant.why, bubble.message_id)
        if why is not None:
            await self.app.push_screen_wait(WhyScreen(assistant, why))
            await self.refresh_status()

    @on(Bubble.LinkOpened)
    def _link(self, event: Bubble.LinkOpened) -> None:
        # A reply's link is the model's invention: nothing but web and mail addresses is handed to the system.
        if event.href.startswith(_OPENED):
            self.app.open_url(event.href)
            self.claw.say(_("Opening {href}", href=event.href))
        else:
            self.claw.say(_("This link is not a web address: {href}", href=event.href))


def _no_effect(home: Assistant, message_id: int) -> str:
    """Why a mark on a reply of a model trains nothing, or nothing yet; "" where it teaches."""
    teaching = home.store.messages.teaching_of(message_id)
    message = home.store.messages.get(message_id)
    chat = home.store.chats.get(message.chat_id)
    if teaching == "never":
        if message_id in home.store.trees.origins(chat.id):
            return _IMPORTED
        # Older than its chat: it was said in another one.
        return _COPIED if message.created_at < chat.created_at else _NEVER
    if not chat.learn:
        return _SILENT
    if teaching == "off":
        return _OFF
    return "" if home.learn.enabled else _LATER


def _beginning(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _BEGINNING else f"{text[:_BEGINNING]}…"
