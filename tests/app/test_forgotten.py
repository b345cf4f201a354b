"""What another program forgets leaves the screen of an open app."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from claw_app.app import ClawApp
from claw_app.screens import chat as chat_screen
from claw_local.forgetting import Forgetting, Request
from claw_local.store import Store

from .conftest import ScriptedAssistant


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_screen, "STATUS_EVERY_S", 0.1)


async def test_a_chat_that_is_forgotten_elsewhere_leaves_the_screen(
    app: ClawApp, scripted: ScriptedAssistant, until: Callable[..., object]
) -> None:
    chat = scripted.ask("Where is the harbour?").chat_id
    other = scripted.ask("What is rain?").chat_id
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        await until(pilot, lambda: getattr(screen, "forgotten", None) == 0)
        await screen.open_chat(chat)
        await until(pilot, lambda: screen.transcript.query("Bubble"))
        elsewhere = Store(scripted.paths)
        Forgetting(elsewhere, scripted.paths).forget(Request(chats=(chat,)))
        elsewhere.close()
        await until(pilot, lambda: screen.chat_id is None and not screen.transcript.query("Bubble"))
        assert screen.forgotten == 1
        await screen.open_chat(other)
        await until(pilot, lambda: screen.transcript.query("Bubble"))
