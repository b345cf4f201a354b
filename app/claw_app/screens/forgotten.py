"""What was forgotten or deleted while the app was open, here or by another program, leaves the screen too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claw_local.errors import NotFoundError
from claw_local.language import N_, _

if TYPE_CHECKING:
    from claw_local.assistant import Assistant
    from claw_local.store import Chat

    from .chat import ChatScreen

SAID = N_("Something was forgotten by another program: what you see is what is left.")
GONE = N_("This chat was deleted by another program, so a new one is open. What you typed is kept.")
TOPIC = "gone"
"""Of a chat that is gone, one notice is enough."""


async def see_forgotten(screen: ChatScreen, said: str = SAID) -> None:
    """Look whether something was forgotten since the last time; if so, show what is left, and say `said`."""
    if screen.forgetting_here:
        return
    claw = screen.claw
    home = await claw.home()
    async with screen.letting_go:
        count, before = await claw.watcher.quick(home.forgetting.count), screen.forgotten
        if before is None or count == before or screen.incognito or claw.leaving:
            screen.forgotten = count
            return
        receipt = (await claw.watcher.quick(home.forgetting.receipts))[-1]
        screen.composer.recall(await claw.watcher.quick(home.said))
        await _show_left(screen, drafts=bool(receipt.counts.get("drafts")))
        screen.forgotten = count
    claw.say(said or _(SAID), timeout=8, topic=TOPIC)


async def _show_left(screen: ChatScreen, *, drafts: bool) -> None:
    """What is left of the open chat, and of what was typed in it (`drafts`: of some, something was forgotten)."""
    chat_id = screen.chat_id
    if chat_id is not None and await _is_gone(screen, chat_id):
        if drafts:
            screen.draft_was_forgotten()
        await _let_go(screen, chat_id)
        chat_id = None
    elif (keeping := screen.keep_draft(anew=True)) is not None:
        await keeping
    await screen.open_chat(chat_id)


async def see_gone(screen: ChatScreen, chat_id: int | None = None) -> bool:
    """Look whether a chat (None: the open one) is there no more; if so, leave it, say it once, and keep what is typed.
    Whether it is gone."""
    claw = screen.claw
    async with screen.letting_go:
        chat_id = screen.chat_id if chat_id is None else chat_id  # As it is now: it may just have been let go.
        if chat_id is None or screen.incognito or claw.leaving or screen.forgetting_here:
            return False
        if not await _is_gone(screen, chat_id):
            return False
        if screen.chat_id == chat_id:
            await _let_go(screen, chat_id)
            await screen.open_chat(None)
        else:
            _stop(screen, chat_id)
    claw.say(_(GONE), severity="warning", timeout=8, topic=TOPIC)
    return True


async def look_up(screen: ChatScreen, assistant: Assistant, chat_id: int) -> Chat | None:
    """A chat that is to be shown; None, and said, if it is gone or cannot be read."""
    try:
        return await screen.claw.background.quick(assistant.chat, chat_id)
    except NotFoundError:
        screen.claw.say(_(GONE), severity="warning", timeout=8, topic=TOPIC)
    except Exception as error:
        screen.claw.fail(error)
    return None


async def _is_gone(screen: ChatScreen, chat_id: int) -> bool:
    home = await screen.claw.home()
    try:
        await screen.claw.watcher.quick(home.chat, chat_id)
    except NotFoundError:
        return True
    return False


async def _let_go(screen: ChatScreen, chat_id: int) -> None:
    """The chat is there no more: what stands in the field joins what was typed for the new one."""
    _stop(screen, chat_id)
    screen.draft_came_back(due=True)
    home = await screen.claw.home()
    screen.show_draft(None, await screen.claw.watcher.quick(home.history.draft, None))


def _stop(screen: ChatScreen, chat_id: int) -> None:
    """Nobody reads what is still being written in it."""
    if screen.live is not None and screen.live.chat_id == chat_id:
        screen.live.cancel()
