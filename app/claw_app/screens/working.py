"""Tools in the chat: what a reply calls is asked about, carried out and shown, then the next reply is. Part of the
chat's screen; it must never decide for the person."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual.screen import Screen

from claw_local.errors import NothingError, UsageError
from claw_local.language import _

from ..talk import LiveReply
from ..widgets.bubbles import Bubble
from ..widgets.tool_use import ToolUse
from .ask import AskLine

if TYPE_CHECKING:
    from claw_local.assistant import Answer, Assistant
    from claw_local.tools.base import Call

    from ..app import ClawApp
    from ..widgets.transcript import Transcript
    from .chat_settings import Choices
    from .undoing import PutAway


class WorkActions(Screen[None]):
    """Carries out what replies call, while the person looks on."""

    if TYPE_CHECKING:
        transcript: Transcript
        chat_id: int | None
        pending: Choices | None
        live: LiveReply | None
        put_away: list[PutAway]
        not_drawn: set[int]
        _live_bubble: Bubble | None

        @property
        def claw(self) -> ClawApp: ...
        async def _follow(self, live: LiveReply) -> None: ...
        async def _ended(self, live: LiveReply) -> None: ...
        def _waiting_words(self) -> str: ...
        async def refresh_chats(self) -> None: ...
        async def renew(self, *, focus: int | None = None) -> None: ...
        async def action_undo_delete(self) -> None: ...
        def last_away(self) -> PutAway | None: ...
        def now_chosen(self, assistant: Assistant) -> Choices: ...

    _tool_stop: threading.Event | None = None
    """Stops the tool that is at work, or what comes after it."""
    _away_when_written = -1
    """How many chats had been put away when a tool last wrote a file; -1 before."""

    async def carry_on(self, assistant: Assistant, live: LiveReply) -> None:
        """Carry out what a reply calls, and show the reply after that, until one calls nothing."""
        while live.error is None and (answer := live.answer) is not None and answer.finish_reason != "cancelled":
            calls = await self.claw.quick(assistant.tools.calls, answer.message_id)
            if not calls:
                return
            self.live = None
            stop = self._tool_stop = threading.Event()
            try:
                result_id = await self._carry_out_all(assistant, answer, calls, stop)
            finally:
                self._tool_stop = None
            if result_id is None or self.claw.leaving:
                return
            live = await self._next_reply(assistant, answer.chat_id, result_id)

    async def _carry_out_all(
        self, assistant: Assistant, answer: Answer, calls: list[Call], stop: threading.Event
    ) -> int | None:
        """The id of the last result; None: the person wants no more for now."""
        await self._fold(assistant, answer)
        tools, result_id = assistant.tools, None
        for call in calls:
            prepared = await self.claw.background.slow(tools.prepare, answer.chat_id, call)
            decision, why = None, ""
            if stop.is_set():
                return None
            if await self.claw.quick(tools.asks, answer.chat_id, prepared):
                from .approve import Approve

                chat = await self.claw.quick(assistant.chat, answer.chat_id)
                elsewhere = chat.title if chat is not None and self.chat_id != chat.id else ""
                decision, why = await self.app.push_screen_wait(Approve(prepared, chat=elsewhere))
            line = ToolUse(prepared.title, state="running")
            if self.chat_id == answer.chat_id:
                await self.transcript.add(line)
            try:
                used = await self.claw.background.slow(
                    tools.use, answer.message_id, prepared, decision, why, after=result_id, stop=stop
                )
            except Exception as error:
                if line.is_attached:
                    await line.remove()
                await self.transcript.note(self.claw.sentence(error), error=True)
                return None
            if used.record.after_sha256:
                self._away_when_written = len(self.put_away)
            if line.is_attached:
                line.finish(used.text, used.record.state, used.message_id)
            result_id = used.message_id
            if decision == "stop" or stop.is_set():
                return None
        return result_id

    async def _fold(self, assistant: Assistant, answer: Answer) -> None:
        """The reply without its calls: the lines of the tools stand for those."""
        bubble = self._live_bubble
        if bubble is None or not bubble.is_attached:
            return
        message = await self.claw.quick(assistant.store.messages.get, answer.message_id)
        if message is not None:
            said = await self.claw.quick(assistant.tools.said, message)
            folded = Bubble(said or "", message_id=answer.message_id, state="called", detail=bubble.detail)
            await self.transcript.swap(bubble, folded)
        self._live_bubble = None

    async def _next_reply(self, assistant: Assistant, chat_id: int, result_id: int) -> LiveReply:
        bubble = Bubble(state="streaming")
        if self.chat_id == chat_id:
            await self.transcript.add(bubble)
            bubble.wait_for(self._waiting_words())
            self._live_bubble = bubble
        live = self.live = LiveReply("", partial(assistant.tools.go_on, result_id), self.claw.background)
        live.started.add_done_callback(lambda _: self.call_later(self._went_on, live, bubble))
        await self._follow(live)
        if live.error is None:
            await self._ended(live)
        else:
            if bubble.is_attached:
                if not bubble.raw and live.reply is not None:
                    self.not_drawn.add(live.reply.message_id)
                await (bubble.finish("failed") if bubble.raw else bubble.remove())
            await self.transcript.note(self.claw.sentence(live.error), error=True)
            self.claw.fail(live.error)
        return live

    def _went_on(self, live: LiveReply, bubble: Bubble) -> None:
        if not live.started.cancelled():
            bubble.message_id = live.started.result().message_id

    def stop_tool(self) -> bool:
        """Stop the tool that is at work. False: none is."""
        if self._tool_stop is None:
            return False
        self._tool_stop.set()
        self.claw.say(_("Stopping."))
        return True

    # The workspace

    def action_workspace(self) -> None:
        """Choose the folder that the chat's tools may touch."""
        self.run_worker(self._ask_workspace())

    async def _ask_workspace(self) -> None:
        assistant = await self.claw.assistant()
        chat = await self.claw.quick(assistant.chat, self.chat_id) if self.chat_id is not None else self.pending
        now = chat.workspace if chat is not None else ""
        said = await self.app.push_screen_wait(
            AskLine(_("Which folder may this chat's tools touch?"), now, _("a folder; none takes it away"))
        )
        if said is not None:
            try:
                await self.work_in(said)
            except UsageError as error:
                self.claw.fail(error)

    async def work_in(self, folder: str) -> None:
        """Give this chat a workspace, or take it away. Raises UsageError: that folder cannot be one."""
        assistant, chat_id = await self.claw.assistant(), self.chat_id
        none = folder.strip().lower() == "none"
        root = "" if none else await self.claw.background.slow(assistant.tools.checked, folder.strip().strip('"'))
        if chat_id is None:
            self.pending = replace(self.now_chosen(assistant), workspace=root)
        elif none:
            await self.claw.quick(assistant.tools.take, chat_id)
        else:
            await self.claw.quick(assistant.tools.give, chat_id, root)
        await self.refresh_chats()
        if none:
            self.claw.say(_("This chat has no tools any more."))
        else:
            self.claw.say(_("Tools may look into {root}; writing and running ask you first.", root=root), timeout=8)

    async def action_undo_last(self) -> None:
        """Take back what was done last: a chat put away, or a file that a tool wrote."""
        last = self.last_away()
        if last is not None and self.put_away.index(last) >= self._away_when_written:
            await self.run_action("undo_delete")
            return
        if self.chat_id is None:
            self.claw.say(_("There is nothing to undo in this chat."))
            return
        assistant = await self.claw.assistant()
        try:
            done = await self.claw.background.quick(assistant.tools.undo, self.chat_id)
        except NothingError:
            self.claw.say(_("There is nothing to undo in this chat."))
        except Exception as error:
            self.claw.fail(error)
        else:
            self.claw.say(done)
            await self.renew()
