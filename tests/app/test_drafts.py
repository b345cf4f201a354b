"""What is typed and not sent is kept, for each chat. The model is a script here: see conftest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from claw_app.app import ClawApp
from claw_app.screens import talking
from claw_app.widgets.bubbles import Question
from claw_local.assistant import Assistant
from claw_local.errors import EngineError, StoreError
from claw_local.settings import Settings
from tests.app.driving import in_one_go, said

Until = Callable[..., Any]


async def ready(pilot: Any, app: ClawApp, until: Until) -> None:
    await until(pilot, app.main._ready.is_set)


async def test_each_chat_keeps_its_draft_and_so_does_the_new_one(app: ClawApp, scripted: Any, until: Until) -> None:
    first, second = scripted.new_chat(title="first"), scripted.new_chat(title="second")
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        await pilot.press(*"new")
        await app.main.go_to(first.id)
        assert app.main.composer.text == ""
        await pilot.press(*"one")
        await app.main.go_to(second.id)
        assert app.main.composer.text == ""
        await pilot.press(*"two")
        await app.main.go_to(first.id)
        assert app.main.composer.text == "one"
        await app.main.go_to(None)
        assert app.main.composer.text == "new"
        await app.main.go_to(second.id)
        assert app.main.composer.text == "two"


async def test_a_pause_in_typing_is_enough_for_the_draft_to_survive_a_kill(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat = scripted.new_chat(title="eggs")
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        await pilot.press(*"half a th")
        await until(pilot, lambda: scripted.history.draft(None) == "half a th", 2)
        await app.main.go_to(chat.id)
        await pilot.press(*"ought")
        before = scripted.chat(chat.id).updated_at
        await until(pilot, lambda: scripted.chat(chat.id).draft == "ought", 2)
        assert scripted.chat(chat.id).updated_at == before
        # Another program sees it: it is on the disk.
        other = Assistant(scripted.paths, Settings(), None)
        assert other.chat(chat.id).draft == "ought"
        other.close()


async def test_two_windows_have_a_new_chat_of_their_own_each(scripted: Any, until: Until) -> None:
    other = type(scripted)(scripted.paths, Settings(), None)
    other.prepare()
    first, second = ClawApp(lambda: scripted), ClawApp(lambda: other)
    async with first.run_test() as pilot:
        await ready(pilot, first, until)
        await pilot.press(*"here")
        await until(pilot, lambda: scripted.history.draft(None) == "here", 2)
        async with second.run_test() as elsewhere:
            await ready(elsewhere, second, until)
            assert second.main.composer.text == ""
            await elsewhere.press(*"there")
            await until(elsewhere, lambda: other.history.draft(None) == "there", 2)
        await pilot.press(*" too")
        await until(pilot, lambda: scripted.history.draft(None) == "here too", 2)
        assert other.history.draft(None) == "there"
    other.close()
    scripted.history.set_draft(None, "")
    assert scripted.history.draft(None) == "there", "the text of the window that was closed is for the next new chat"


async def test_two_windows_on_one_chat_lose_neither_text(scripted: Any, until: Until) -> None:
    chat = scripted.new_chat(title="eggs")
    other = type(scripted)(scripted.paths, Settings(), None)
    other.prepare()
    first, second = ClawApp(lambda: scripted, chat_id=chat.id), ClawApp(lambda: other, chat_id=chat.id)
    async with first.run_test() as pilot:
        await ready(pilot, first, until)
        async with second.run_test() as elsewhere:
            await ready(elsewhere, second, until)
            await pilot.press(*"here")
            await until(pilot, lambda: scripted.chat(chat.id).draft == "here", 2)
            await elsewhere.press(*"there")
            await until(elsewhere, lambda: other.history.draft(chat.id) == "there", 2)
            await pilot.press(*" too")
            await until(pilot, lambda: scripted.chat(chat.id).draft == "here too", 2)
            await second.main.go_to(None)
            assert second.main.composer.text == ""
            await second.main.go_to(chat.id)
            assert second.main.composer.text == "there"
        await first.main.go_to(None)
        other.close()
        await first.main.go_to(chat.id)
        assert first.main.composer.text.splitlines() == ["here too", "there"]


async def test_leaving_keeps_the_draft_and_the_next_start_brings_it_back(scripted: Any, until: Until) -> None:
    app = ClawApp(lambda: scripted)
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        await pilot.press(*"not yet")
        await pilot.press("ctrl+q")
        await until(pilot, lambda: app._exit)
    again = ClawApp(lambda: scripted)
    async with again.run_test() as pilot:
        await pilot.press(*"typed at once")
        await ready(pilot, again, until)
        assert again.main.composer.text.splitlines() == ["not yet", "typed at once"]


async def test_a_sent_message_is_no_draft_any_more(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        await pilot.press(*"hello")
        await until(pilot, lambda: scripted.history.draft(None) == "hello", 2)
        await pilot.press("enter")
        await until(pilot, lambda: app.main.chat_id and not app.main.sending)
        await pilot.press(*"next")
        await until(pilot, lambda: scripted.chat(app.main.chat_id).draft == "next", 2)
        assert scripted.history.draft(None) == ""
        await app.main.go_to(None)
        assert app.main.composer.text == ""


async def test_a_message_that_failed_is_a_draft_again(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.render = lambda *_, **__: (_ for _ in ()).throw(EngineError("It does not fit. Shorten it."))
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        await pilot.press(*"too long", "enter")
        await until(pilot, lambda: app.main.composer.text == "too long" and not app.main.sending)
        await until(pilot, lambda: scripted.history.draft(None) == "too long", 2)


async def test_showing_the_open_chat_again_leaves_what_is_typed_alone(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    chat = scripted.new_chat(title="eggs")
    scripted.ask("hello", chat=chat.id)
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        await app.main.go_to(chat.id)
        await pilot.press(*"typing")
        await app.main.open_chat(chat.id)
        assert app.main.composer.text == "typing"
        assert app.main.query(Question)


async def test_a_chat_with_a_draft_has_a_mark_in_the_list(app: ClawApp, scripted: Any, until: Until) -> None:
    chat = scripted.new_chat(title="eggs")
    scripted.history.set_draft(chat.id, "half a thought")
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, app.main.chats.titles)
        assert "✎ eggs" in [str(option.prompt) for option in app.main.chats.options]


async def test_a_draft_that_cannot_be_kept_is_said_and_tried_again(
    app: ClawApp, scripted: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        with monkeypatch.context() as full:
            full.setattr(scripted.history, "set_draft", _refuse)
            await pilot.press(*"kept")
            await until(pilot, lambda: "The disk is full" in said(app))
        assert app.main.composer.text == "kept"
        await pilot.press("!", "backspace")
        await until(pilot, lambda: scripted.history.draft(None) == "kept", 2)


def _refuse(*_: object) -> None:
    raise StoreError("The disk is full: nothing could be written.")


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """What is sent becomes a message only when this is set."""
    now, begin = threading.Event(), talking._begin

    def waiting(*args: Any) -> Any:
        assert now.wait(20)
        return begin(*args)

    monkeypatch.setattr(talking, "_begin", waiting)
    return now


async def test_what_is_typed_right_behind_enter_stays_in_the_field(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        in_one_go(app, "hello", "enter")
        in_one_go(app, "and more")
        await until(pilot, lambda: app.main.composer.text == "and more" and not app.main.sending)
        assert scripted.messages(app.main.chat_id)[0].content == "hello"


async def test_what_is_typed_while_a_message_is_on_its_way_stays_with_its_chat(
    app: ClawApp, scripted: Any, until: Until, late: threading.Event
) -> None:
    chat = scripted.ask("eggs").chat_id
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        await app.main.go_to(chat)
        await say_nothing_yet(pilot, app, "boiled", "and fried")
        await app.main.go_to(None)
        assert app.main.composer.text == ""
        assert "boiled" in scripted.chat(chat).draft, "until it is a message, it is kept beside what is typed"
        await app.main.go_to(chat)
        assert app.main.composer.text == "and fried", "it is on its way, and not typed"
        await app.main.go_to(None)
        late.set()
        await until(pilot, lambda: not app.main.sending)
        await until(pilot, lambda: scripted.chat(chat).draft == "and fried")
        assert [one.content for one in scripted.messages(chat)][2] == "boiled"


async def test_what_is_typed_behind_the_first_message_goes_with_it_into_its_chat(
    app: ClawApp, scripted: Any, until: Until, late: threading.Event
) -> None:
    other = scripted.ask("eggs").chat_id
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        await say_nothing_yet(pilot, app, "rain", "and snow")
        await app.main.go_to(other)
        late.set()
        await until(pilot, lambda: not app.main.sending)
        new = next(chat.id for chat in scripted.chats() if chat.id != other)
        await until(pilot, lambda: scripted.chat(new).draft == "and snow")
        assert scripted.history.draft(None) == ""
        assert app.main.composer.text == ""


async def test_what_could_not_be_sent_is_kept_where_it_was_typed(
    app: ClawApp, scripted: Any, until: Until, late: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = scripted.ask("eggs").chat_id
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        await app.main.go_to(chat)
        await say_nothing_yet(pilot, app, "boiled", "and fried")
        await app.main.go_to(None)

        def fails(*args: Any, **options: Any) -> Any:
            raise EngineError("The model does not answer.")

        monkeypatch.setattr(scripted, "stream", fails)
        late.set()
        await until(pilot, lambda: not app.main.sending)
        assert app.main.composer.text == "", "another chat's field is not where it was typed"
        await app.main.go_to(chat)
        assert app.main.composer.text == "boiled\nand fried"


async def say_nothing_yet(pilot: Any, app: ClawApp, sent: str, typed: str) -> None:
    """Send one text, and type another while the first is on its way."""
    app.main.composer.text = sent
    await pilot.press("enter")
    assert app.main.sending and app.main.composer.text == ""
    app.main.composer.text = typed
    await pilot.pause()


async def test_what_cannot_be_sent_because_its_chat_is_gone_stands_in_the_field_again(
    app: ClawApp, scripted: Any, until: Until, late: threading.Event
) -> None:
    chat = scripted.ask("eggs").chat_id
    async with app.run_test() as pilot:
        await ready(pilot, app, until)
        await app.main.go_to(chat)
        app.main.composer.text = "boiled"
        await pilot.press("enter")
        scripted.delete_chat(chat)
        late.set()
        await until(pilot, lambda: not app.main.sending)
        await until(pilot, lambda: app.main.composer.text == "boiled" and app.main.chat_id is None)


async def test_what_cannot_be_sent_while_the_app_opens_stands_in_the_field_again(
    scripted: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = ClawApp(lambda: scripted, chat_id=scripted.ask("eggs").chat_id)
    started, opened = threading.Event(), scripted.history.draft

    def slow(chat_id: int | None) -> str:
        assert started.wait(20)
        return opened(chat_id)

    def fails(*args: Any, **options: Any) -> Any:
        raise EngineError("The model does not answer.")

    monkeypatch.setattr(scripted.history, "draft", slow)
    monkeypatch.setattr(scripted, "stream", fails)
    async with app.run_test() as pilot:
        app.main.composer.text = "boiled"
        await pilot.press("enter")
        assert app.main.sending
        started.set()
        await until(pilot, lambda: not app.main.sending)
        assert app.main.composer.text == "boiled"
