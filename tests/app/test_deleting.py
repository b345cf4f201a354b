"""Deleting chats, and bringing them back. The model is a script here: see conftest."""

from __future__ import annotations

import time
from typing import Any

import pytest

from claw_app.app import ClawApp
from claw_app.widgets.bubbles import Question
from claw_app.widgets.undo_line import UndoLine
from claw_app.widgets.welcome import Welcome
from claw_local.errors import NotFoundError
from tests.app.driving import Until, said, say


def undo_line(app: ClawApp) -> str:
    line = app.main.query_one(UndoLine)
    return str(line.render()) if line.display else ""


async def test_a_deleted_chat_is_gone_at_once_and_comes_back_with_ctrl_z(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        chat_id = app.main.chat_id
        await pilot.press("f8")
        await until(pilot, lambda: app.main.query(Welcome) and scripted.chats() == [])
        assert app.main.chats.titles() == []
        assert "“hello”" in undo_line(app)
        assert "Ctrl+Z" in undo_line(app)
        await pilot.press("ctrl+z")
        await until(pilot, lambda: app.main.chat_id == chat_id and app.main.query(Question))
        assert [chat.id for chat in scripted.chats()] == [chat_id]
        assert undo_line(app) == ""


async def test_deletes_are_undone_one_by_one_also_after_other_things(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        for words in ("one", "two", "three"):
            await pilot.press("ctrl+n")
            await say(pilot, app, words, until)
        app.main.chats.focus()
        app.main.chats.action_first()
        await pilot.press("d")
        await until(pilot, lambda: len(scripted.chats()) == 2)
        await until(pilot, lambda: len(app.main.chats.titles()) == 2)
        await pilot.press("d")  # the cursor is on the neighbour
        await until(pilot, lambda: len(scripted.chats()) == 1)
        await pilot.press("escape", "ctrl+n")
        await say(pilot, app, "four", until)
        app.main.chats.focus()
        await pilot.press("ctrl+z")
        await until(pilot, lambda: {chat.title for chat in scripted.chats()} == {"one", "two", "four"})
        await pilot.press("ctrl+z")
        await until(pilot, lambda: {chat.title for chat in scripted.chats()} == {"one", "two", "three", "four"})


async def test_ctrl_z_undoes_typing_while_something_is_typed(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await pilot.press("f8")
        await until(pilot, lambda: scripted.chats() == [] and app.main.query(Welcome))
        await pilot.press("a", "b", "ctrl+z")
        await until(pilot, lambda: app.main.composer.text == "")
        assert scripted.chats() == []
        await pilot.press("ctrl+z")
        await until(pilot, scripted.chats)


async def test_deleted_chats_are_removed_for_good_when_the_person_leaves(
    app: ClawApp, scripted: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claw_app.app._TIDY_S", 30.0)
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        chat_id = app.main.chat_id
        await pilot.press("f8")
        await until(pilot, lambda: undo_line(app))
        assert scripted.store.chats.get(chat_id).deleted_at
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running or app._exit)
    with pytest.raises(NotFoundError):
        scripted.store.chats.get(chat_id)


async def test_a_chat_that_another_window_goes_on_with_stays(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        chat_id = app.main.chat_id
        await pilot.press("f8")
        await until(pilot, lambda: undo_line(app))
        scripted.ask("are you there?", chat=chat_id)
        await pilot.press("ctrl+q")
        await until(pilot, lambda: not app.is_running or app._exit)
    assert [chat.id for chat in scripted.chats()] == [chat_id]
    assert len(scripted.messages(chat_id)) == 4


async def test_what_a_killed_app_had_deleted_is_removed_a_day_later(app: ClawApp, scripted: Any, until: Until) -> None:
    old, fresh = scripted.new_chat(title="old"), scripted.new_chat(title="fresh")
    scripted.history.delete(fresh.id)
    scripted.store.chats.update(old.id, deleted_at="2026-01-01T00:00:00.000000+00:00")
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.state)
        assert scripted.store.chats.get(fresh.id).deleted_at
        with pytest.raises(NotFoundError):
            scripted.store.chats.get(old.id)


async def test_a_chat_is_deleted_while_its_reply_streams(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.script, scripted.engine.pause_s = ["word "] * 1000, 0.01
    async with app.run_test() as pilot:
        app.main.composer.text = "hello"
        await pilot.press("enter")
        await until(pilot, lambda: app.main.live and app.main.live.text)
        await pilot.press("f8")
        await until(pilot, lambda: scripted.chats() == [] and not app.main.sending)
        assert not app._notifications


async def test_an_archived_chat_is_taken_out_again_only_while_that_is_offered(
    app: ClawApp, scripted: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await app.main.run_action("archive_chat")
        await until(pilot, lambda: "Archived “hello”" in undo_line(app))
        await pilot.press("ctrl+z")
        await until(pilot, lambda: not scripted.chats(archived=True) and undo_line(app) == "")
        await app.main.run_action("archive_chat")
        await until(pilot, lambda: scripted.chats(archived=True) and undo_line(app))
        monkeypatch.setattr("claw_app.screens.undoing.SHOWN_S", 0.0)
        await app.main.run_action("undo_delete")
        await until(pilot, lambda: "There is no deleted chat to bring back." in said(app))
        assert [chat.title for chat in scripted.chats(archived=True)] == ["hello"]


@pytest.mark.parametrize("what", ["archive", "delete"])
async def test_undone_at_once_a_chat_that_is_just_being_put_away_comes_back(
    app: ClawApp, scripted: Any, until: Until, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = getattr(type(scripted.history), what)

    def slowly(*args: Any) -> Any:
        time.sleep(0.4)
        return slow(*args)

    monkeypatch.setattr(type(scripted.history), what, slowly)
    async with app.run_test() as pilot:
        await say(pilot, app, "hello", until)
        await app.main.run_action(f"{what}_chat")
        await pilot.press("ctrl+z")
        await until(pilot, lambda: "is back" in said(app))
        await until(pilot, lambda: [chat.title for chat in scripted.chats()] == ["hello"])
        assert not scripted.chats(archived=True) and "There is no deleted chat to bring back." not in said(app)
