"""Forgetting for good, from the chat: what would go is shown first. Part of the chat's screen; it must never know how
anything is forgotten."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from textual.screen import Screen

from claw_local.errors import ClawError
from claw_local.language import _, ngettext

from ..text import one_line
from .ask import Confirm
from .forgotten import see_forgotten

if TYPE_CHECKING:
    from collections.abc import Callable

    from claw_local.forgetting import Plan, Receipt, Request

    from ..app import ClawApp
    from ..talk import LiveReply
    from ..widgets.transcript import Transcript
    from .chat import ChatScreen

_SHOWN = 4
_WIDE = 56


class ForgetActions(Screen[None]):
    """Asks, and lets it be forgotten."""

    if TYPE_CHECKING:
        transcript: Transcript
        live: LiveReply | None

        @property
        def claw(self) -> ClawApp: ...
        @property
        def incognito(self) -> bool: ...
        def _open_one(self, what: str) -> int | None: ...
        def stop_naming(self) -> None: ...
        def keep_draft(self) -> Any: ...
        async def refresh_chats(self) -> None: ...
        async def refresh_status(self) -> None: ...

    forgotten: int | None = None
    """How often something was forgotten in this home, as far as the screen knows."""
    forgetting_here = False
    """Whether something is being forgotten from this screen: then it is not the doing of another program."""

    def action_forget_chat(self) -> None:
        """Forget the open chat, or the one under the cursor of the list."""
        chat_id = self._open_one("forget")
        if chat_id is not None:
            self.run_worker(self._forget(chats=(chat_id,)))

    def action_forget_message(self) -> None:
        """Forget the message in focus, or else the last reply with its question."""
        message = self.transcript.chosen_question() or self.transcript.chosen()
        if self.incognito:
            self.claw.say(_("This chat is incognito: nothing of it is kept, and it is gone when you leave it."))
        elif message is None or not message.message_id:
            self.claw.say(_("There is no message here yet."))
        else:
            self.run_worker(self._forget(messages=(message.message_id,)))

    async def forget_text(self, text: str) -> None:
        """Forget everything that has this text in it."""
        await self._forget(containing=text)

    async def _forget(
        self, *, chats: tuple[int, ...] = (), messages: tuple[int, ...] = (), containing: str = ""
    ) -> None:
        from claw_local.forgetting import Request

        home = await self.claw.home()
        kept = self.keep_draft()
        if kept is not None:
            await kept
        request = Request(chats=chats, messages=messages, containing=containing)
        try:
            plan = await self.claw.background.slow(home.forgetting.plan, request)
        except ClawError as error:
            self.claw.fail(error)
            return
        if plan.nothing:
            self.claw.say(_("Nothing of that kind is there, so nothing was forgotten."))
            return
        if await self.app.push_screen_wait(Confirm(what_goes(plan), _("Forget for good"), _("Not now"))):
            await self._forget_now(request)

    async def _forget_now(self, request: Request) -> None:
        home = await self.claw.home()
        self.stop_naming()
        while self.live is not None and not self.incognito:
            self.live.cancel()
            await asyncio.sleep(0.05)
        self.forgetting_here = True
        try:
            if self.forgotten is None:
                self.forgotten = await self.claw.quick(home.forgetting.count)
            receipt = await self.claw.background.slow(home.forgetting.forget, request)
        except Exception as error:
            self.claw.fail(error)
            return
        finally:
            self.forgetting_here = False
        await see_forgotten(cast("ChatScreen", self), said=what_went(receipt))
        await self.refresh_chats()
        await self.refresh_status()


def what_goes(plan: Plan) -> str:
    """What would go, for a question of a few lines."""
    lines = [_("Forget for good? This goes: {what}.", what=_counted(plan.counts))]
    for _id, title, number, whole in plan.chats[:_SHOWN]:
        what = _("the whole chat") if whole else ngettext("{number} message", "{number} messages", number)
        named = _cut(title or _("untitled"))
        lines.append(f"· “{named}”: {what}")
    if (more := len(plan.chats) - _SHOWN) > 0:
        lines.append("· " + ngettext("and {number} more chat", "and {number} more chats", more))
    lines += ["· " + _("hint “{hint}”", hint=_cut(text)) for text in plan.hints[:_SHOWN]]
    if plan.adapters:
        lines.append(_("What learned from it goes too: {adapters}.", adapters=_adapters(plan.adapters)))
    if plan.in_use:
        instead = ", ".join(_("adapter {id}", id=one) if one else _("the base model") for one in plan.in_use)
        lines.append(_("In use instead: {adapters}.", adapters=instead))
    if plan.judges:
        lines.append(_("What the judge learned from your feedback goes too."))
    if files := len(plan.backups) + len(plan.logs):
        lines.append(
            ngettext(
                "So does {number} backup or log of this home, which may hold it.",
                "So do {number} backups and logs of this home, which may hold it.",
                files,
            )
        )
    if plan.learning:
        lines.append(_("The learning run that is going on will be stopped."))
    lines.append(_("This cannot be undone. Backups and exports that you made yourself are not touched."))
    return "\n".join(lines)


def what_went(receipt: Receipt) -> str:
    """What was forgotten, in a sentence or two."""
    went = [_counted(receipt.counts), *([_adapters(receipt.adapters)] if receipt.adapters else [])]
    said = [_("Forgotten: {what}.", what=", ".join(went))]
    if receipt.again:
        said.append(
            ngettext(
                "{number} lesson waits to be learned again.",
                "{number} lessons wait to be learned again.",
                receipt.again,
            )
        )
    if receipt.left:
        said.append(_("Not clean yet: {what}.", what="; ".join(one_line(left) for left in receipt.left)))
    return " ".join(said)


def _counted(counts: dict[str, int]) -> str:
    named: dict[str, Callable[[int], str]] = {
        "chats": lambda number: ngettext("{number} chat", "{number} chats", number),
        "messages": lambda number: ngettext("{number} message", "{number} messages", number),
        "hints": lambda number: ngettext("{number} hint", "{number} hints", number),
        "samples": lambda number: ngettext("{number} lesson", "{number} lessons", number),
        "drafts": lambda number: ngettext("{number} draft", "{number} drafts", number),
        "titles": lambda number: ngettext("{number} title", "{number} titles", number),
    }
    return ", ".join(words(counts[name]) for name, words in named.items() if counts.get(name)) or _("settings")


def _adapters(ids: tuple[int, ...]) -> str:
    return ", ".join(_("adapter {id}", id=one) for one in ids)


def _cut(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"
