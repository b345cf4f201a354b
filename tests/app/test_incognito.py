"""Chats that leave nothing behind. The model is a script here: see conftest."""

from __future__ import annotations

from typing import Any

from textual.widgets import Input

from claw_app.app import ClawApp
from claw_app.screens.ask import AskLine
from claw_app.widgets.bubbles import Notice, Question
from claw_app.widgets.welcome import Welcome
from tests.app.driving import Until, said, say

SECRET = "the violet umbrella"


async def go_incognito(pilot: Any, app: ClawApp, until: Until) -> None:
    await until(pilot, app.main._ready.is_set)
    await pilot.press("f12")
    await until(pilot, lambda: app.main.incognito and app.main.query(Notice))


def badge(app: ClawApp) -> bool:
    return bool(app.main.query_one("#badge").display)


async def test_an_incognito_chat_says_what_it_is_and_looks_different(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        assert not badge(app)
        await go_incognito(pilot, app, until)
        await until(pilot, lambda: badge(app))
        assert app.main.composer.border_title == "incognito"
        assert "Nothing said here is stored" in str(app.main.query_one(Notice).render())


async def test_nothing_of_an_incognito_chat_is_on_the_disk(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        await go_incognito(pilot, app, until)
        await pilot.press(*"half typed", "backspace")
        await pilot.pause(0.6)  # as long as a draft takes to be kept
        await say(pilot, app, SECRET, until)
        assert [str(question.render()) for question in app.main.query(Question)] == [SECRET]
        await pilot.press("ctrl+g")
        await pilot.pause(0.1)
        assert scripted.chats() == []
        assert app.main.chats.titles() == []
        kept = b"".join(file.read_bytes() for file in scripted.paths.data.rglob("*") if file.is_file())
        for phrase in (SECRET, "Hello **there**", "half typ"):
            assert phrase.encode() not in kept


async def test_a_hint_given_in_it_is_said_to_hold_there_alone(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await go_incognito(pilot, app, until)
        bubble = await say(pilot, app, SECRET, until)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, AskLine) and app.screen.query(Input))
        assert "in this chat only" in str(app.screen.query(".dialog-keys").first().render())
        await pilot.press(*"No lists please", "enter")
        await until(pilot, lambda: bubble.hint == "No lists please" and "holds in this chat only" in said(app))
        assert scripted.hints.list() == [] and "every chat" not in said(app)


async def test_leaving_it_asks_nothing_and_forgets_it(app: ClawApp, scripted: Any, until: Until) -> None:
    chat = scripted.new_chat(title="eggs")
    scripted.ask("hello", chat=chat.id)
    async with app.run_test(size=(120, 36)) as pilot:
        await go_incognito(pilot, app, until)
        await say(pilot, app, SECRET, until)
        await pilot.press(*"and more")
        await app.main.go_to(chat.id)
        await until(pilot, lambda: [str(q.render()) for q in app.main.query(Question)] == ["hello"])
        assert not app.main.incognito
        assert not badge(app)
        assert app.main.composer.text == ""
        await pilot.press("up")
        assert SECRET not in app.main.composer.text
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.main.query(Welcome))
        assert not app.main.query(Question)
        await say(pilot, app, "stored again", until)
        assert "stored again" in [chat.title for chat in scripted.chats()]


async def test_showing_it_again_never_shows_the_stored_chat_of_the_same_number(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat = scripted.new_chat(title="eggs")
    scripted.ask("hello", chat=chat.id)
    async with app.run_test(size=(120, 36)) as pilot:
        await go_incognito(pilot, app, until)
        await say(pilot, app, SECRET, until)
        await app.main.open_chat(app.main.chat_id)
        assert [str(question.render()) for question in app.main.query(Question)] == [SECRET]
        assert app.main.composer.text == ""


async def test_it_is_never_renamed_exported_or_archived_and_delete_leaves_it(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat = scripted.new_chat(title="eggs")
    async with app.run_test() as pilot:
        await go_incognito(pilot, app, until)
        await say(pilot, app, SECRET, until)
        for action in ("rename_chat", "export_chat", "archive_chat", "duplicate_chat"):
            await app.main.run_action(action)
            await pilot.pause()
            assert app.screen is app.main
        await pilot.press("f8")
        await until(pilot, lambda: app.main.query(Welcome) and not app.main.incognito)
        assert [kept.id for kept in scripted.chats()] == [chat.id]


async def test_a_reply_that_is_being_written_stops_when_it_is_left(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.script, scripted.engine.pause_s = ["word "] * 1000, 0.01
    async with app.run_test() as pilot:
        await go_incognito(pilot, app, until)
        app.main.composer.text = SECRET
        await pilot.press("enter")
        await until(pilot, lambda: app.main.live and app.main.live.text)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: not app.main.sending)
        assert not app._notifications
        assert scripted.chats() == []
