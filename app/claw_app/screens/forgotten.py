"""What was forgotten while the app was open, here or by another program, leaves the screen too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from claw_local.errors import NotFoundError
from claw_local.language import N_, _

if TYPE_CHECKING:
    from .chat import ChatScreen

SAID = N_("Something was forgotten by another program: what you see is what is left.")


async def see_forgotten(screen: ChatScreen, said: str = SAID) -> None:
    """Look whether something was forgotten since the last time; if so, show what is left, and say `said`."""
    if screen.forgetting_here:
        return
    claw = screen.claw
    home = await claw.home()
    count = await claw.watcher.quick(home.forgetting.count)
    before, screen.forgotten = screen.forgotten, count
    if before is None or count == before or screen.incognito or claw.leaving:
        return
    receipt = (await claw.watcher.quick(home.forgetting.receipts))[-1]
    screen.composer.recall(await claw.watcher.quick(home.said))
    chat_id = screen.chat_id
    if chat_id is not None:
        try:
            await claw.watcher.quick(home.chat, chat_id)
        except NotFoundError:
            screen.draft_came_back()
            chat_id = None
    if receipt.counts.get("drafts"):
        screen.composer.restore(await claw.watcher.quick(home.history.draft, chat_id))
    await screen.open_chat(chat_id)
    claw.say(said or _(SAID), timeout=8)
