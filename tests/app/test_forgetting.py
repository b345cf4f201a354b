"""Forgetting for good from the chat: what goes is shown first, and leaves the screen. The model is a script here."""

from __future__ import annotations

import asyncio
from typing import Any

from claw_app.app import ClawApp
from claw_app.screens.ask import Confirm
from claw_app.screens.forgotten import see_gone
from claw_local.forgetting import Request
from tests.app import drawing
from tests.app.driving import Until, said, send, shown


async def asked(pilot: Any, app: ClawApp, until: Until) -> str:
    """The question that is asked before anything is forgotten."""
    await until(pilot, lambda: isinstance(app.screen, Confirm) and "cannot be undone" in drawing.text(app))
    return " ".join(drawing.text(app).replace("│", " ").split())


async def test_a_chat_is_forgotten_with_all_that_came_of_it_and_up_brings_none_of_it(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    answer = scripted.ask("Where is the harbour?")
    scripted.feedback(answer.message_id, "bad", hint="Name the harbour in one word")
    scripted.ask("What is rain?")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await app.main.go_to(answer.chat_id)
        await until(pilot, lambda: shown(app)[:1] == ["Where is the harbour?"])
        await send(pilot, app, "/forget")
        question = await asked(pilot, app, until)
        assert "1 chat, 2 messages, 1 hint" in question and "the whole chat" in question
        assert "hint “Name the harbour in one word”" in question
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)
        assert scripted.messages(answer.chat_id), "Esc forgets nothing"
        await send(pilot, app, "/forget")
        await asked(pilot, app, until)
        await pilot.press("y")
        await until(pilot, lambda: "Forgotten: 1 chat, 2 messages, 1 hint" in said(app))
        await until(pilot, lambda: app.main.chat_id is None and not shown(app))
        assert [title for _, title in app.main.chats.titles()] == ["What is rain?"]
        assert scripted.hints.list(active_only=False) == []
        assert "another program" not in said(app)
        await pilot.press("up")
        assert app.main.composer.text == "What is rain?"
        await pilot.press("up")
        assert app.main.composer.text == "What is rain?", "there is nothing before it any more"


async def test_everything_with_a_text_in_it_is_forgotten_and_what_is_not_there_is_said(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    first = scripted.ask("The password is swordfish")
    second = scripted.ask("What is rain?")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await send(pilot, app, "/forget nowhere at all")
        await until(pilot, lambda: "nothing was forgotten" in said(app))
        await send(pilot, app, "/forget swordfish")
        await asked(pilot, app, until)
        await pilot.press("y")
        await until(pilot, lambda: "Forgotten: " in said(app))
        assert [chat.id for chat in scripted.chats()] == [second.chat_id]
        assert "swordfish" not in " ".join(app.main.composer._sent)
        assert first.chat_id not in [chat_id for chat_id, _ in app.main.chats.titles()]


async def test_one_message_is_forgotten_with_its_question_and_the_rest_stays(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat_id = scripted.ask("One").chat_id
    scripted.ask("Two", chat=chat_id)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await app.main.go_to(chat_id)
        await until(pilot, lambda: len(shown(app)) == 4)
        await send(pilot, app, "/forget-this")
        assert "2 messages" in await asked(pilot, app, until)
        await pilot.press("y")
        await until(pilot, lambda: shown(app) == ["One", "Hello **there**."])
        assert [message.content for message in scripted.messages(chat_id)] == ["One", "Hello **there**."]


async def test_an_incognito_chat_has_nothing_to_forget(app: ClawApp, until: Until) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await pilot.press("f12")
        await until(pilot, lambda: app.main.incognito)
        await send(pilot, app, "/forget")
        await until(pilot, lambda: "there is nothing to forget" in said(app))
        await send(pilot, app, "/forget-this")
        await until(pilot, lambda: "nothing of it is kept" in said(app))


async def test_a_chat_that_was_just_let_go_is_not_told_as_gone_once_more(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat_id = scripted.ask("Where is the harbour?").chat_id
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await app.main.go_to(chat_id)
        await until(pilot, lambda: len(shown(app)) == 2)
        async with app.main.letting_go:
            looking = asyncio.create_task(see_gone(app.main))
            await asyncio.sleep(0)
            scripted.forgetting.forget(Request(chats=(chat_id,)))
            await app.main.open_chat(None)
        assert await looking is False
        assert "deleted by another program" not in said(app)
