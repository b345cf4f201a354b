"""What another program restores while the app is open never gets what was meant for the chat on the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from claw_app.app import ClawApp
from claw_app.screens import chat as chat_screen
from claw_local.backup import restore
from claw_local.backup.writing import write_backup
from claw_local.paths import locate
from claw_local.store import Store

from .conftest import ScriptedAssistant
from .driving import said, say, send, shown


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Its chats 1 and 2 are others."""
    other = Store(locate(tmp_path / "other"))
    for title in ("about boats", "about sails"):
        chat = other.chats.create(title=title)
        other.messages.begin_turn(chat.id, f"All {title}", parent_id=None)
    made = write_backup(other, locate(tmp_path / "other"), tmp_path / "other.backup").path
    other.close()
    return made


def messages(assistant: ScriptedAssistant) -> list[str]:
    with assistant.store.database.read() as db:
        return [
            text for (text,) in db.execute("select content from messages where role = 'user' and turn_type = 'main'")
        ]


async def test_what_is_sent_right_after_a_restore_comes_back_into_the_field(
    app: ClawApp,
    scripted: ScriptedAssistant,
    backup: Path,
    until: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chat_screen, "STATUS_EVERY_S", 1.0)
    async with app.run_test(size=(100, 30)) as pilot:
        screen = app.main
        await until(pilot, lambda: screen.forgotten == 0)
        await say(pilot, app, "What is rain?", until)
        await asyncio.to_thread(restore, scripted.paths, backup)
        await send(pilot, app, "And snow?")
        await until(pilot, lambda: not scripted.restored() and not screen.sending)
        await until(
            pilot, lambda: sorted(title for _, title in screen.chats.titles()) == ["about boats", "about sails"]
        )
        await until(pilot, lambda: said(app).count("put back from a backup") == 1)
        assert screen.composer.text == "And snow?"
        assert screen.chat_id is None
        assert shown(app) == []
        assert messages(scripted) == ["All about boats", "All about sails"]
        await pilot.press("enter")
        await until(pilot, lambda: not screen.sending and screen.transcript.replies())
        assert screen.chat_id == 3
        assert messages(scripted) == ["All about boats", "All about sails", "And snow?"]


async def test_an_app_that_only_looks_on_notices_too_and_keeps_what_is_typed(
    app: ClawApp,
    scripted: ScriptedAssistant,
    backup: Path,
    until: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chat_screen, "STATUS_EVERY_S", 0.1)
    chat = scripted.ask("What is rain?").chat_id
    async with app.run_test(size=(100, 30)) as pilot:
        screen = app.main
        await until(pilot, lambda: screen.forgotten == 0)
        await screen.open_chat(chat)
        await pilot.press(*"half")
        await asyncio.to_thread(restore, scripted.paths, backup)
        await until(pilot, lambda: not scripted.restored() and scripted.history.draft(None) == "half")
        await until(pilot, lambda: said(app).count("put back from a backup") == 1)
        assert (screen.chat_id, screen.composer.text, shown(app)) == (None, "half", [])
        assert scripted.chat(chat).draft == ""
