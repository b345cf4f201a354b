"""What another program forgets leaves the screen of an open app."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from claw_app.app import ClawApp
from claw_app.screens import chat as chat_screen
from claw_app.screens.forgotten import see_forgotten
from claw_local.errors import StoreError
from claw_local.forgetting import Forgetting, Request
from claw_local.history import History
from claw_local.store import Store

from .conftest import ScriptedAssistant
from .driving import said


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
        await until(pilot, lambda: screen.forgotten == 1)
        await screen.open_chat(other)
        await until(pilot, lambda: screen.transcript.query("Bubble"))


async def test_a_draft_that_is_forgotten_elsewhere_takes_no_other_text_with_it(
    app: ClawApp, scripted: ScriptedAssistant, until: Callable[..., object]
) -> None:
    elsewhere = Store(scripted.paths)
    other = History(elsewhere)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.main
        await until(pilot, lambda: screen.forgotten == 0)
        await pilot.press(*"typed here")
        await until(pilot, lambda: scripted.history.draft(None) == "typed here")
        other.set_draft(None, "a word like quixotry")
        Forgetting(elsewhere, scripted.paths).forget(Request(containing="quixotry"))
        await until(pilot, lambda: screen.forgotten == 1)
        await until(pilot, lambda: "forgotten by another program" in said(app))
        assert screen.composer.text == "typed here"
        assert other.draft(None) == ""
    elsewhere.close()


def gone(scripted: ScriptedAssistant, chat: int, how: str) -> None:
    """What another program does to a chat."""
    elsewhere = Store(scripted.paths)
    if how == "forget":
        Forgetting(elsewhere, scripted.paths).forget(Request(chats=(chat,)))
    else:
        History(elsewhere).delete_for_good(chat)
    elsewhere.close()


@pytest.mark.parametrize("how", ["forget", "delete"])
async def test_what_is_sent_into_a_chat_that_is_gone_is_kept_and_one_notice_says_so(
    app: ClawApp,
    scripted: ScriptedAssistant,
    until: Callable[..., object],
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chat = scripted.ask("Where is the harbour?").chat_id
    monkeypatch.setattr("claw_app.screens.chat.STATUS_EVERY_S", 3600.0)  # It is sent before the window has looked.
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.main
        await until(pilot, screen._ready.is_set)
        await see_forgotten(screen)
        assert screen.forgotten == 0
        await screen.open_chat(chat)
        await pilot.press(*"and rain?")
        await until(pilot, lambda: scripted.chat(chat).draft == "and rain?")  # Else that would find it gone first.
        gone(scripted, chat, how)
        await pilot.press("enter")
        await until(pilot, lambda: screen.chat_id is None and screen.composer.text == "and rain?")
        await see_forgotten(screen)
        await until(pilot, lambda: not screen.sending and "by another program" in said(app))
        await pilot.pause(0.3)
        assert len(app._notifications) == 1
        assert "claw-local" not in said(app) and not screen.query("Bubble")


@pytest.mark.parametrize("how", ["forget", "delete"])
async def test_a_reply_whose_chat_goes_ends_with_one_notice(
    app: ClawApp,
    scripted: ScriptedAssistant,
    until: Callable[..., object],
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("claw_app.screens.drafts.PAUSE_S", 3600.0)  # What was kept of it would be forgotten, too.
    monkeypatch.setattr("claw_app.screens.drafts.LONGEST_S", 3600.0)
    chat = scripted.ask("Where is the harbour?").chat_id
    scripted.engine.script, scripted.engine.pause_s = ["a "] * 400, 0.05
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.main
        await until(pilot, lambda: screen.forgotten == 0)
        await screen.open_chat(chat)
        await pilot.press(*"rain", "enter")
        await until(pilot, lambda: screen.live is not None and screen.live.text)
        await pilot.press(*"typed")
        gone(scripted, chat, how)
        await until(pilot, lambda: not screen.sending and screen.chat_id is None)
        await until(pilot, lambda: "by another program" in said(app))
        await pilot.pause(0.3)
        assert len(app._notifications) == 1 and "unexpected" not in said(app)
        assert screen.composer.text == "typed" and not screen.query("Bubble")


async def test_a_store_that_cannot_be_read_is_said_once_and_ends_nothing(
    app: ClawApp, scripted: ScriptedAssistant, until: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with app.run_test() as pilot:
        screen = app.main
        await until(pilot, lambda: screen.forgotten == 0)
        asked: list[int] = []

        def refuse(_: object) -> int:
            asked.append(1)
            raise StoreError("It has been locked by another program for 30 s.")

        monkeypatch.setattr(Forgetting, "count", refuse)
        await until(pilot, lambda: len(asked) > 3)
        assert app.is_running
        assert said(app).count("locked by another") == 1


async def test_what_is_typed_in_a_chat_that_goes_joins_what_was_typed_for_the_new_one(
    app: ClawApp, scripted: ScriptedAssistant, until: Callable[..., object]
) -> None:
    chat = scripted.ask("Where is the harbour?").chat_id
    scripted.history.set_draft(None, "for later")
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.main
        await until(pilot, lambda: screen.forgotten == 0)
        await screen.open_chat(chat)
        await pilot.press(*"and rain?")
        gone(scripted, chat, "delete")
        await until(pilot, lambda: screen.chat_id is None and screen.composer.text == "for later\nand rain?")
        await until(pilot, lambda: scripted.history.draft(None) == "for later\nand rain?")


async def test_what_was_kept_of_the_field_is_forgotten_and_what_was_typed_since_stays(
    app: ClawApp, scripted: ScriptedAssistant, until: Callable[..., object]
) -> None:
    chat = scripted.ask("Where is the harbour?").chat_id
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.main
        await until(pilot, lambda: screen.forgotten == 0)
        await screen.open_chat(chat)
        await pilot.press(*"a word like quixotry")
        await until(pilot, lambda: scripted.chat(chat).draft == "a word like quixotry")
        screen.composer.insert_here(" and a ship")
        elsewhere = Store(scripted.paths)
        Forgetting(elsewhere, scripted.paths).forget(Request(containing="quixotry"))
        elsewhere.close()
        await until(pilot, lambda: screen.forgotten == 1)
        await until(pilot, lambda: screen.composer.text == " and a ship")
        await until(pilot, lambda: scripted.chat(chat).draft == " and a ship")
