"""Asking, and showing the reply while it comes. Part of the chat's screen; it must never decide what is learned."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING, cast

from textual import on
from textual.screen import Screen

from claw_local.errors import ClawError, NotFoundError, RestoredError
from claw_local.language import _, ngettext

from ..talk import LiveReply
from ..widgets.bubbles import Bubble, Question
from ..widgets.composer import Composer
from ..words import BUSY
from .forgotten import see_gone

if TYPE_CHECKING:
    from claw_local.assistant import Answer, Assistant, Reply

    from ..app import ClawApp
    from ..widgets.status_line import StatusLine
    from ..widgets.transcript import Transcript
    from .chat import ChatScreen
    from .chat_settings import Choices


class Talking(Screen[None]):
    """Sends what the person typed, and shows the reply as it streams, also while another chat is open."""

    if TYPE_CHECKING:
        transcript: Transcript
        composer: Composer
        status: StatusLine
        chat_id: int | None
        pending: Choices | None
        not_drawn: set[int]
        _ready: asyncio.Event
        turned: asyncio.Event
        _visit: int

        @property
        def claw(self) -> ClawApp: ...
        @property
        def incognito(self) -> bool: ...
        def skip_first_steps(self) -> bool: ...
        async def refresh_chats(self) -> None: ...
        async def catch_up(self) -> None: ...
        async def refresh_status(self) -> None: ...
        def draft_came_back(self, *, due: bool = False) -> None: ...
        async def carry_on(self, assistant: Assistant, live: LiveReply) -> None: ...
        def stop_tool(self) -> bool: ...
        def draft_is_going(self, field: str) -> None: ...
        def draft_did_not_go(self) -> None: ...
        def draft_was_sent(self, origin: int | None, chat_id: int, *, here: bool) -> None: ...
        @property
        def keeps_what_is_going(self) -> bool: ...

    live: LiveReply | None = None
    """The reply that is being written; None while there is none."""
    sending = False
    """Whether a message is on its way or being answered: from Enter to the end of the reply."""
    _live_bubble: Bubble | None = None
    _naming: threading.Event | None = None

    @on(Composer.Sent)
    def _sent(self, event: Composer.Sent) -> None:
        if self.sending:
            self.claw.say(_("The reply before this one is still being written. Esc stops it."), topic=BUSY)
            return
        self.sending = True
        self.stop_naming()
        self.draft_is_going(event.field)
        self.composer.accept(event.field, remember=not self.incognito)
        self.run_worker(self._talk(event.text), exit_on_error=self.claw.debug_errors)

    async def _talk(self, text: str) -> None:
        question, bubble = Question(text), Bubble(state="streaming")
        try:
            if not self._ready.is_set():
                await self._show_sent(question, bubble)
                await self._ready.wait()
                await self.turned.wait()
                assistant = await self.claw.assistant()
                visit, chat_id, content = self._visit, self.chat_id, assistant.content
                if not bubble.is_attached:
                    question, bubble = Question(text), Bubble(state="streaming")
                    await self._show_sent(question, bubble)
                self._live_bubble = bubble
            else:
                # It goes to the chat that was chosen, also where that is still being shown; and where chats are put
                # back from a backup meanwhile, to none.
                assistant = await self.claw.assistant()
                visit, chat_id, content = self._visit, self.chat_id, assistant.content
                await self.turned.wait()
                if chat_id is not None and chat_id == self.chat_id:
                    visit = self._visit
                if visit == self._visit:
                    await self._see_before()
                if visit == self._visit:
                    await self._show_sent(question, bubble)
            chosen = self.pending if chat_id is None else None
            self.pending = None if chosen is not None else self.pending
            begin = partial(_begin, assistant, text, chat_id, chosen, content)
            live = self.live = LiveReply(text, begin, self.claw.background)
            live.started.add_done_callback(
                lambda _: self.call_later(self._started, live, visit, chat_id, question, bubble)
            )
            await self._follow(live)
            if live.error is not None:
                await self._failed(assistant, live, chat_id, chosen, question)
            else:
                await self._ended(live)
                await self.carry_on(assistant, live)
                if chat_id is None and live.answer is not None and live.answer.finish_reason != "cancelled":
                    self.run_worker(self._write_title(assistant, live.answer.chat_id, content))
            self.claw.loaded = assistant.loaded
        finally:
            self.live, self._live_bubble, self.sending = None, None, False
            self.draft_did_not_go()
            self.claw.unsay(BUSY)
        await self.refresh_chats()
        await self.refresh_status()

    async def _see_before(self) -> None:
        """What another program has said in this chat meanwhile comes before what is sent: that follows it."""
        try:
            await self.catch_up()
        except ClawError as error:  # Whatever it is stands in the way of sending too, and is said there.
            self.log.error(f"not looked up: {error}")

    async def _follow(self, live: LiveReply) -> None:
        """Hand on what comes until nothing more does, to whichever bubble shows it."""
        ended = False
        self.status.writing = True
        try:
            while not ended:
                ended = live.ended  # Asked before the batch, so that nothing that came during the last one is left.
                await live.batch()
                if (shown := self._bubble_in_sight) is not None:
                    await shown.write(live.text[len(shown.raw) :])
        finally:
            self.status.writing = False

    async def _show_sent(self, question: Question, bubble: Bubble) -> None:
        await self.transcript.add(question, bubble)
        bubble.wait_for(self._waiting_words())
        self._live_bubble = bubble

    async def _watch(self, live: LiveReply, bubble: Bubble) -> None:
        """Show a reply that streams on while its chat was out of sight."""
        await self.transcript.add(bubble)
        if not live.text:
            bubble.wait_for(self._waiting_words())
        self._live_bubble = bubble

    def _waiting_words(self) -> str:
        return _("reading") if self.claw.loaded else _("loading the model; the reply begins when it is ready")

    async def _started(
        self, live: LiveReply, visit: int, origin: int | None, question: Question, bubble: Bubble
    ) -> None:
        if live.started.cancelled():
            return
        reply: Reply = live.started.result()
        bubble.message_id, question.message_id = reply.message_id, reply.user_message_id
        here = visit == self._visit
        if self.chat_id is None and here:
            self.chat_id = reply.chat_id
        self.draft_was_sent(origin, reply.chat_id, here=here)
        await self.refresh_chats()

    @property
    def _bubble_in_sight(self) -> Bubble | None:
        bubble = self._live_bubble
        return bubble if bubble is not None and bubble.is_attached else None

    async def _ended(self, live: LiveReply) -> None:
        bubble, answer, reply = self._bubble_in_sight, live.answer, live.reply
        if bubble is None or answer is None:
            return
        bubble.message_id = answer.message_id
        state = {"cancelled": "interrupted", "length": "cut"}.get(answer.finish_reason, "done")
        await bubble.finish(state, _made(answer))
        for notice in dict.fromkeys([*(reply.notices if reply is not None else ()), *answer.notices]):
            await self.transcript.note(notice)

    async def _failed(
        self, assistant: Assistant, live: LiveReply, origin: int | None, chosen: Choices | None, question: Question
    ) -> None:
        bubble, reply, error = self._bubble_in_sight, live.reply, live.error
        assert error is not None
        if isinstance(error, RestoredError):  # The chat it went to is not there any more; `see_restored` says so.
            if bubble is not None:
                await bubble.remove()
                await question.remove()
            self._give_back(live.question)
            return
        if isinstance(error, NotFoundError):
            chat_id = reply.chat_id if reply is not None else origin
            if chat_id is not None and await see_gone(cast("ChatScreen", self), chat_id):
                self._give_back(live.question)
                return
        # A chat that began with a failure is not worth keeping: the text goes back to where it was typed.
        empty = origin is None and not live.text
        if empty and reply is not None:
            await self.claw.quick(assistant.delete_chat, reply.chat_id)
            if self.chat_id == reply.chat_id and bubble is not None:
                self.chat_id = None
                self.draft_came_back()
        if empty and self.chat_id is None and self.pending is None:
            self.pending = chosen
        if bubble is not None:
            if bubble.raw:
                await bubble.finish("failed")
            else:
                if reply is not None:
                    self.not_drawn.add(reply.message_id)
                await bubble.remove()
                if reply is None or empty:
                    await question.remove()
            await self.transcript.note(self.claw.sentence(error), error=True)
        self.claw.fail(error)
        self._give_back(live.question)

    def _give_back(self, text: str) -> None:
        if not self.keeps_what_is_going:
            self.composer.give_back(text)

    def action_stop(self) -> None:
        """Stop the reply that is being written; if there is none, go back to typing."""
        if self.live is not None:
            self.live.cancel()
            if self._live_bubble is not None and not self._live_bubble.raw:
                self._live_bubble.wait_for(_("stopping"))
        elif not self.stop_tool() and not self.skip_first_steps():
            self.composer.focus()

    # A chat's name, in the model's words

    async def _write_title(self, assistant: Assistant, chat_id: int, content: str) -> None:
        if self.incognito or self.claw.leaving:
            return
        stop = self._naming = threading.Event()
        try:
            title = await self.claw.background.slow(_title, assistant, chat_id, content, stop)
        except ClawError:  # The chat keeps its first words as its title: nothing is lost that anyone would miss.
            return
        if title and not self.claw.leaving:
            await self.refresh_chats()

    def stop_naming(self) -> None:
        """The model has something better to do than a title."""
        if self._naming is not None:
            self._naming.set()
            self._naming = None


def _begin(assistant: Assistant, text: str, chat_id: int | None, chosen: Choices | None, content: str) -> Reply:
    """Ask in the chat of this content; a new chat gets what was chosen for it first. Runs in a thread."""
    with assistant.meaning(content):
        return _ask(assistant, text, chat_id, chosen)


def _ask(assistant: Assistant, text: str, chat_id: int | None, chosen: Choices | None) -> Reply:
    if chosen is None:
        return assistant.stream(text, chat=chat_id)
    chat = assistant.new_chat(model=chosen.model, system=chosen.system, sampling=chosen.sampling, learn=chosen.learn)
    try:
        if chosen.adapter:
            assistant.set_chat(chat.id, adapter=chosen.adapter)
        if chosen.workspace:
            assistant.tools.give(chat.id, chosen.workspace)
        return assistant.stream(text, chat=chat.id)
    except BaseException:
        assistant.delete_chat(chat.id)
        raise


def _title(assistant: Assistant, chat_id: int, content: str, stop: threading.Event) -> str | None:
    with assistant.meaning(content):
        return assistant.write_title(chat_id, cancel=stop)


def _made(answer: Answer) -> str:
    tokens = ngettext("{number} token", "{number} tokens", answer.completion_tokens)
    adapter = _("adapter {id}", id=answer.adapter) if answer.adapter else _("base model")
    return f"{tokens} · {answer.total_s:.1f} s · {adapter}"
