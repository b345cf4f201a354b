"""The chat: composes the widgets and passes between them and the assistant. It must never decide what is learned."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer

from ..commands import bindings
from ..talk import LiveReply
from ..text import one_line
from ..widgets.bubbles import Bubble, Question
from ..widgets.chat_list import ChatList
from ..widgets.composer import Composer
from ..widgets.learn_bar import LearnBar
from ..widgets.status_line import StatusLine
from ..widgets.top_bar import TopBar
from ..widgets.transcript import Transcript
from .ask import AskLine, Confirm
from .learning import LearningActions
from .replies import ReplyActions

if TYPE_CHECKING:
    from claw_local.assistant import Assistant, Reply
    from claw_local.store import Signal

    from ..app import ClawApp

STATUS_EVERY_S = 2.0
WIDE = 100


class ChatScreen(ReplyActions, LearningActions, Screen[None]):
    """One open chat, the list of the others, and a field to type in."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(),
        Binding("j,down", "step(1)", "Next reply", show=False),
        Binding("k,up", "step(-1)", "Previous reply", show=False),
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    AUTO_FOCUS = "#composer"

    @dataclass
    class Judged(Message):
        """The judge has scored a reply; comes from its thread."""

        signal: Signal

    def __init__(self, chat_id: int | None = None) -> None:
        super().__init__()
        self.chat_id = chat_id
        self.live: LiveReply | None = None
        self.sending = False
        self._live_bubble: Bubble | None = None
        self._visit = 0
        # Set once the first chat is shown; what is sent before that is shown at once and joins it.
        self._ready = asyncio.Event()

    @property
    def claw(self) -> ClawApp:
        """The app, by its own type."""
        return cast("ClawApp", self.app)

    def compose(self) -> ComposeResult:
        yield TopBar()
        with Horizontal(id="middle"):
            yield ChatList()
            with Vertical(id="talk"):
                yield Transcript()
                yield LearnBar()
                yield Composer()
        yield StatusLine()
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.transcript = self.query_one(Transcript)
        self.composer = self.query_one(Composer)
        self.chats = self.query_one(ChatList)
        self.status = self.query_one(StatusLine)
        self.top = self.query_one(TopBar)
        # Nothing slow before the first paint: the assistant opens, and the model loads, after it.
        self.call_after_refresh(self._start)

    def set_focus(self, widget: Widget | None, scroll_visible: bool = True, from_app_focus: bool = False) -> None:
        """As usual, but a reply reached by keys shows its end, with the line about it. A click scrolls nothing."""
        super().set_focus(widget, scroll_visible and not isinstance(widget, Bubble), from_app_focus)
        if scroll_visible and isinstance(widget, Bubble):
            self.call_after_refresh(widget.show_end)

    def _start(self) -> None:
        self.run_worker(self._begin(), exit_on_error=self.claw.debug_errors)

    async def _begin(self) -> None:
        assistant = await self.claw.open()
        if assistant is None:
            return
        assistant.on_judged(self._hear)
        await self.open_chat(self.chat_id)
        self._ready.set()
        await self.refresh_status()
        self.set_interval(STATUS_EVERY_S, self.poll_status)
        self.status.model = "loading the model …"
        try:
            info = await self.claw.background.slow(assistant.load)
        except Exception as error:
            self.status.model, self.status.trouble = "no model", True
            await self.transcript.note(self.claw.sentence(error), error=True)
            return
        self.status.model = info.name
        await self.refresh_status()

    def _hear(self, signal: Signal) -> None:
        self.post_message(self.Judged(signal))

    # Chats

    async def open_chat(self, chat_id: int | None) -> None:
        """Show a chat; None shows a new one, which exists only once something is said in it."""
        assistant = await self.claw.assistant()
        self._visit += 1
        visit = self._visit
        self._live_bubble, self.chat_id = None, chat_id
        chats = await self.claw.quick(assistant.chats)
        if chats is None or visit != self._visit:
            return
        self.chats.fill(chats, chat_id)
        self.top.set_title(self.chats.title_of(chat_id) if chat_id is not None else "")
        if chat_id is None:
            if self.sending and not self._ready.is_set():
                return
            learning = bool(await self.claw.quick(lambda: assistant.learn.enabled))
            await self.transcript.welcome(first=not chats, learning=learning, home=str(assistant.paths.data))
            return
        messages = await self.claw.quick(assistant.messages, chat_id)
        signals = await self.claw.quick(assistant.signals, [message.id for message in messages or ()])
        if messages is None or visit != self._visit:
            return
        live = self.live if self.live is not None and self.live.chat_id == chat_id else None
        arriving = live.reply.message_id if live is not None and live.reply is not None else None
        await self.transcript.show([message for message in messages if message.id != arriving], signals or {})
        if live is not None:
            await self._watch(live, Bubble(live.text, message_id=arriving or 0, state="streaming"))

    async def _watch(self, live: LiveReply, bubble: Bubble) -> None:
        """Show a reply that streams on while its chat was out of sight."""
        await self.transcript.add(bubble)
        if not live.text:
            bubble.wait_for(self._waiting_words())
        self._live_bubble = bubble

    async def refresh_chats(self) -> None:
        """Show the list as it is now."""
        assistant = await self.claw.assistant()
        chats = await self.claw.quick(assistant.chats)
        if chats is not None:
            self.chats.fill(chats, self.chat_id)
            if self.chat_id is not None:
                self.top.set_title(self.chats.title_of(self.chat_id))

    def action_new_chat(self) -> None:
        """Begin a new chat."""
        self.run_worker(self.open_chat(None))
        self.composer.focus()

    def action_toggle_chats(self) -> None:
        """Show the list and go there; from there, hide it."""
        if self.chats.display and not self.chats.has_focus:
            self.chats.focus()
            return
        shown = not self.chats.display
        self.chats.display = shown
        (self.chats if shown else self.composer).focus()

    @on(ChatList.Chosen)
    def _chosen(self, event: ChatList.Chosen) -> None:
        self.run_worker(self.open_chat(event.chat_id))
        if self.has_class("-narrow"):
            self.chats.display = False
        self.composer.focus()

    @on(ChatList.Act)
    def _act(self, event: ChatList.Act) -> None:
        self.run_worker(self._rename(event.chat_id) if event.what == "rename" else self._delete(event.chat_id))

    def action_rename_chat(self) -> None:
        """Rename the open chat."""
        if self._has_chat():
            self.run_worker(self._rename(cast(int, self.chat_id)))

    def action_delete_chat(self) -> None:
        """Delete the open chat, after a question."""
        if self._has_chat():
            self.run_worker(self._delete(cast(int, self.chat_id)))

    def _has_chat(self) -> bool:
        if self.chat_id is None:
            self.claw.say("This chat is still empty: there is nothing to rename or delete.")
        return self.chat_id is not None

    async def _rename(self, chat_id: int) -> None:
        assistant = await self.claw.assistant()
        title = await self.app.push_screen_wait(AskLine("The chat's new name", self.chats.title_of(chat_id)))
        if title is not None:
            await self.claw.quick(assistant.rename_chat, chat_id, one_line(title))
            await self.refresh_chats()

    async def _delete(self, chat_id: int) -> None:
        assistant = await self.claw.assistant()
        question = f"Delete “{self.chats.title_of(chat_id)}” and all its messages? This cannot be undone."
        if not await self.app.push_screen_wait(Confirm(question, "Delete")):
            return
        while self.live is not None and self.live.chat_id == chat_id:
            self.live.cancel()
            await asyncio.sleep(0.05)
        await self.claw.quick(assistant.delete_chat, chat_id)
        if chat_id == self.chat_id:
            await self.open_chat(None)
        else:
            await self.refresh_chats()
        await self.refresh_status()

    # Talking

    @on(Composer.Sent)
    def _sent(self, event: Composer.Sent) -> None:
        if self.sending:
            self.claw.say("The reply before this one is still being written. Esc stops it.")
            return
        self.sending = True
        self.composer.accept()
        self.run_worker(self._talk(event.text), exit_on_error=self.claw.debug_errors)

    async def _talk(self, text: str) -> None:
        question, bubble = Question(text), Bubble(state="streaming")
        try:
            await self._show_sent(question, bubble)
            if not self._ready.is_set():
                await self._ready.wait()
                if not bubble.is_attached:
                    question, bubble = Question(text), Bubble(state="streaming")
                    await self._show_sent(question, bubble)
                self._live_bubble = bubble
            assistant = await self.claw.assistant()
            visit, chat_id = self._visit, self.chat_id
            live = self.live = LiveReply(text, lambda: assistant.stream(text, chat=chat_id), self.claw.background)
            live.started.add_done_callback(lambda _: self.call_later(self._started, live, visit, bubble))
            while True:
                await live.batch()
                shown = self._live_bubble
                if shown is not None and shown.is_attached:
                    await shown.write(live.text[len(shown.raw) :])
                if live.ended:
                    break
            await self._ended(assistant, live, question)
        finally:
            self.live, self._live_bubble, self.sending = None, None, False

    async def _show_sent(self, question: Question, bubble: Bubble) -> None:
        await self.transcript.add(question, bubble)
        bubble.wait_for(self._waiting_words())
        self._live_bubble = bubble

    def _waiting_words(self) -> str:
        return "reading" if self.claw.loaded else "loading the model; the reply begins when it is ready"

    async def _started(self, live: LiveReply, visit: int, bubble: Bubble) -> None:
        if live.started.cancelled():
            return
        reply: Reply = live.started.result()
        bubble.message_id = reply.message_id
        if self.chat_id is None and visit == self._visit:
            self.chat_id = reply.chat_id
        await self.refresh_chats()

    async def _ended(self, assistant: Assistant, live: LiveReply, question: Question) -> None:
        bubble = self._live_bubble if self._live_bubble is not None and self._live_bubble.is_attached else None
        error, answer, reply = live.error, live.answer, live.reply
        here = bubble is not None
        if error is not None:
            if bubble is not None and not bubble.raw:
                await bubble.remove()
                if reply is None:
                    await question.remove()
            elif bubble is not None:
                await bubble.finish("failed")
            if here:
                await self.transcript.note(self.claw.sentence(error), error=True)
            self.claw.fail(error)
            self.composer.give_back(live.question)
        elif bubble is not None and answer is not None:
            detail = f"{answer.completion_tokens} tokens · {answer.total_s:.1f} s · " + (
                f"adapter {answer.adapter}" if answer.adapter else "base model"
            )
            bubble.message_id = answer.message_id
            await bubble.finish({"cancelled": "interrupted", "length": "cut"}.get(answer.finish_reason, "done"), detail)
            for notice in dict.fromkeys([*(reply.notices if reply is not None else ()), *answer.notices]):
                await self.transcript.note(notice)
        self.claw.loaded = assistant.loaded
        await self.refresh_chats()
        await self.refresh_status()

    def action_stop(self) -> None:
        """Stop the reply that is being written; if there is none, go back to typing."""
        if self.live is not None:
            self.live.cancel()
            if self._live_bubble is not None and not self._live_bubble.raw:
                self._live_bubble.wait_for("stopping")
        else:
            self.composer.focus()

    @on(Composer.Scrolled)
    def _scrolled(self, event: Composer.Scrolled) -> None:
        (self.transcript.scroll_page_up if event.pages < 0 else self.transcript.scroll_page_down)()

    @on(Composer.Left)
    async def _left(self) -> None:
        await self.app.run_action("quit")

    def action_step(self, by: int) -> None:
        """Move from reply to reply."""
        self.transcript.step(by)

    @on(Judged)
    async def _judged(self, event: Judged) -> None:
        for bubble in self.transcript.replies():
            if bubble.message_id == event.signal.message_id:
                bubble.add_mark(event.signal)
        await self.refresh_status()
