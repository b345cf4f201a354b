"""Versions: asking again, saying it otherwise, correcting a reply, and walking between them. Part of the chat's screen.

Nothing is ever overwritten: each of these begins a branch. It must never know how branches are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual import on
from textual.screen import Screen

from claw_local.language import N_, _

from ..branch import Branch
from ..talk import LiveReply
from ..widgets.bubbles import Bubble, Question
from ..widgets.editor import Editor
from ..words import BUSY, EXAMPLE

if TYPE_CHECKING:
    import asyncio

    from claw_local.assistant import Assistant, Reply

    from ..app import ClawApp
    from ..widgets.composer import Composer
    from ..widgets.transcript import Transcript

OVERTAKEN = N_("The reply you corrected shows ▼ now, in place of your ▲.")
COUNTS = N_("For learning, your ▲ is still its score.")
ONE_AT_A_TIME = N_("A reply is still being written. Esc stops it.")


class BranchActions(Screen[None]):
    """The actions that begin a branch, or show another one."""

    if TYPE_CHECKING:
        transcript: Transcript
        composer: Composer
        chat_id: int | None
        live: LiveReply | None
        sending: bool
        renewing: asyncio.Lock
        not_drawn: set[int]
        _live_bubble: Bubble | None

        @property
        def claw(self) -> ClawApp: ...
        @property
        def incognito(self) -> bool: ...
        def _reply(self) -> Bubble | None: ...
        def _waiting_words(self) -> str: ...
        async def _follow(self, live: LiveReply) -> None: ...
        async def _ended(self, live: LiveReply) -> None: ...
        async def carry_on(self, assistant: Assistant, live: LiveReply) -> None: ...
        async def _give(self, bubble: Bubble, verdict: None, **said: Any) -> bool: ...
        async def refresh_chats(self) -> None: ...
        async def refresh_status(self) -> None: ...

    async def renew(self, *, focus: int | None = None) -> None:
        """Show the open chat as it is in the store now, without moving what has not changed."""
        chat_id = self.chat_id
        if chat_id is None:
            return
        assistant, hidden, stored = await self.claw.assistant(), self.not_drawn, not self.sending
        async with self.renewing:
            branch = await self.claw.quick(Branch, assistant, chat_id, leave_out=hidden, stored=stored)
            if branch is None or chat_id != self.chat_id:
                return
            await self.transcript.renew(branch, focus=focus)
            if focus is not None:
                await self.transcript.reveal(focus, focus=True)

    # Walking

    async def action_walk(self, by: int, message_id: int | None = None) -> None:
        """Show the version before or after a message, or the one in focus, with what followed it."""
        if self.sending:  # How many versions there are is known once it is written.
            self.claw.say(_("A reply is still being written. Walk when it is there, or stop it with Esc."), topic=BUSY)
            return
        if message_id is None:
            shown = self.transcript.chosen_question() or self.transcript.chosen()
        else:
            shown = self.transcript.version(message_id)
        if shown is None or not shown.message_id:
            return
        place = shown.versions.index(shown.message_id) + by if shown.message_id in shown.versions else 0
        if len(shown.versions) < 2:
            self.claw.say(_("There is one version only. r asks again; e says it otherwise."))
        elif 0 <= place < len(shown.versions):
            await self._show_version(shown.versions[place])

    def action_walk_from(self, message_id: int, by: int) -> None:
        """The same from a message that was clicked on."""
        # Later: the walk waits until that message is gone, and the message until its click is over.
        self.call_later(self.action_walk, by, message_id)

    async def _show_version(self, message_id: int) -> None:
        assistant = await self.claw.assistant()
        await self.claw.quick(assistant.show_version, message_id)
        await self.renew(focus=message_id)

    async def action_older_version(self) -> None:
        """Show the version before."""
        await self.action_walk(-1)

    async def action_newer_version(self) -> None:
        """Show the version after."""
        await self.action_walk(1)

    # Asking again

    async def action_regenerate(self) -> None:
        """Ask for another reply to the same question."""
        bubble = self._reply()
        if bubble is None:
            return
        if self.sending:
            self.claw.say(_(ONE_AT_A_TIME), topic=BUSY)
            return
        assistant, message_id = await self.claw.assistant(), bubble.message_id
        self._branch_off(bubble, None, lambda: assistant.regenerate(message_id), "")

    def _branch_off(
        self, instead_of: Question | Bubble, question: Question | None, begin: Callable[[], Reply], text: str
    ) -> None:
        self.sending = True
        self.run_worker(self._stream_branch(instead_of, question, begin, text), exit_on_error=self.claw.debug_errors)

    async def _stream_branch(
        self, instead_of: Question | Bubble, question: Question | None, begin: Callable[[], Reply], text: str
    ) -> None:
        bubble = Bubble(state="streaming")
        assistant, chat_id = await self.claw.assistant(), self.chat_id
        reading, stopped = question is None and not self.composer.has_focus, False
        try:
            async with self.renewing:
                await self.transcript.cut(instead_of)
            await self.transcript.add(*([question] if question is not None else []), bubble)
            (bubble if reading else self.composer).focus()
            bubble.wait_for(self._waiting_words())
            self._live_bubble = bubble
            live = self.live = LiveReply(text, begin, self.claw.background)
            live.started.add_done_callback(lambda _: self.call_later(self._begun, live, bubble, question))
            await self._follow(live)
            if live.error is None:
                await self._ended(live)
                await self.carry_on(assistant, live)
            stopped = question is None and await self._drop_if_empty(assistant, live, instead_of)
            self.claw.loaded = assistant.loaded
        finally:
            self.live, self._live_bubble, self.sending = None, None, False
            self.claw.unsay(BUSY)
        if chat_id == self.chat_id:
            reading = reading and self.focused is bubble
            await self._settle(live)
            # Who was walking among the messages goes on there.
            if reading and live.reply is not None and (stopped or self.focused in (None, bubble)):
                place = instead_of.message_id if stopped else live.reply.message_id
                await self.transcript.reveal(place, focus=True)
        await self.refresh_chats()
        await self.refresh_status()

    async def _drop_if_empty(self, assistant: Assistant, live: LiveReply, before: Question | Bubble) -> bool:
        """Asking again that was stopped before a word came is taken back. Whether it was."""
        answer = live.answer
        if answer is None or answer.finish_reason != "cancelled" or answer.text.strip():
            return False
        return bool(await self.claw.quick(assistant.unask, answer.message_id, before.message_id))

    async def _begun(self, live: LiveReply, bubble: Bubble, question: Question | None) -> None:
        if not live.started.cancelled():
            reply = live.started.result()
            bubble.message_id = reply.message_id
            if question is not None:
                question.message_id = reply.user_message_id

    async def _settle(self, live: LiveReply) -> None:
        await self.renew()
        error = live.error
        if error is not None:
            await self.transcript.note(self.claw.sentence(error), error=True)
            self.claw.fail(error)
            if live.reply is None and live.question:
                self.composer.give_back(live.question)

    # Writing where it stands

    def action_edit(self) -> None:
        """Say the question in focus otherwise; else write the reply as it should have been, where it stands."""
        question = self.transcript.chosen_question()
        message = question if question is not None else self._reply()
        if message is None or not message.message_id:
            return
        if self.sending:
            self.claw.say(_(ONE_AT_A_TIME), topic=BUSY)
        elif self.query(Editor):
            self.query_one(Editor).focus()
        elif isinstance(message, Question):
            self.run_worker(
                self._open_editor(message, Editor(message.raw, title=_("Say it otherwise"), enter_keeps=True))
            )
        else:
            self.run_worker(self._open_editor(message, Editor(message.raw, title=_("The reply as you want it"))))

    async def _open_editor(self, message: Question | Bubble, editor: Editor) -> None:
        self.transcript.anchor(False)
        with self.app.batch_update():
            message.display = False
            await self.transcript.put_after(editor, message)

    async def _close_editor(self, editor: Editor) -> Question | Bubble | None:
        message = self.transcript.before(editor)
        with self.app.batch_update():
            if message is not None:
                message.display = True
            await editor.remove()
        return message

    @on(Editor.Left)
    async def _left_editor(self, event: Editor.Left) -> None:
        message = await self._close_editor(event.editor)
        if message is not None:
            message.focus()

    @on(Editor.Kept)
    async def _kept(self, event: Editor.Kept) -> None:
        text = event.text.strip()
        message = await self._close_editor(event.editor)
        if message is None:
            # So much was said meanwhile that the message is not drawn any more: nothing is changed, or lost.
            typed = self.composer.draft
            self.composer.restore(f"{typed}\n{text}" if typed.strip() else text)
            return
        if not text or text == message.raw.strip():
            message.focus()
            return
        if isinstance(message, Question):
            await self._ask_otherwise(message, text)
        elif await self._give(message, None, edit=text):
            await self._show_correction(message)

    async def _ask_otherwise(self, question: Question, text: str) -> None:
        if self.sending:
            self.claw.say(_(ONE_AT_A_TIME), topic=BUSY)
            return
        assistant: Assistant = await self.claw.assistant()
        message_id = question.message_id
        if not self.incognito:
            self.composer.add_sent(text)
        self._branch_off(question, Question(text), lambda: assistant.edit_question(message_id, text), text)

    async def _show_correction(self, bubble: Bubble) -> None:
        kept = await self._of_the_correction(bubble)
        await self.renew()
        if self.transcript.holds(bubble.message_id):  # What was said after an older reply stays in view.
            way = _("→ on the reply shows it.")
            self.claw.say(f"{kept} {way}", timeout=8)
            await self.transcript.reveal(bubble.message_id, focus=True)
        else:
            self.claw.say(kept, timeout=8)
            self.transcript.step(1)

    async def _of_the_correction(self, bubble: Bubble) -> str:
        """What becomes of the person's version of a reply."""
        overtaken = [_(OVERTAKEN)] if bubble.thumb == "▲" else []
        if self.incognito:
            return " ".join([_("Your version stands in this chat only: nothing of it is kept."), *overtaken])
        assistant = await self.claw.assistant()
        newest = await self.claw.quick(assistant.store.messages.siblings, bubble.message_id)
        why = await self.claw.quick(assistant.why, newest[-1].id) if newest else None
        example = why.example_of if why is not None else None
        said = [_("Your version is kept."), *overtaken]
        if overtaken and example == "yes":
            said.append(_(COUNTS))
        return " ".join(said if example is None else [*said, _(EXAMPLE[example])])
