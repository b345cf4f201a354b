"""Chats that another program puts back from a backup while the app is open: the numbers on the screen mean others then.

What is typed stays in the field; the chat that was open is left, and the list is read anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from claw_local.language import N_, _

if TYPE_CHECKING:
    from .chat import ChatScreen

SAID = N_(
    "The chats were put back from a backup by another program: the list shows those there are now. "
    "What you typed stays in the field; nothing was sent."
)
TOPIC = "restored"


async def see_restored(screen: ChatScreen) -> bool:
    """Look whether it happened; if so, leave the chat that was open, and say it. Whether nothing old is in hand.

    While a dialog or a reply is there that has numbers of before, they stay in force, so that nothing can be written by
    them.
    """
    claw = screen.claw
    home = await claw.home()
    content = await claw.watcher.quick(home.restored)
    if not content:
        return True
    if screen.sending or claw.screen is not screen or claw.leaving:
        return False
    screen.stop_naming()
    screen.forget_undo()
    if not screen.incognito:
        screen.draft_came_back()
        await screen.open_chat(None)
    await claw.background.quick(lambda: None)  # What was asked for before is over, and was refused.
    home.accept(content)
    kept = screen.keep_draft()
    if kept is not None:
        await kept
    await screen.refresh_chats()
    claw.say(_(SAID), timeout=12, topic=TOPIC)
    return True
