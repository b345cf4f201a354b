"""What another program adds to a chat is shown while the app is open, and moves nothing that is read or typed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from claw_app.app import ClawApp
from claw_app.screens import chat as chat_screen
from claw_local.paths import locate
from claw_local.settings import Settings
from claw_local.store.watching import chat_stamp, version

from .conftest import ScriptedAssistant
from .driving import Until, said, say, send, shown

REPLY = "Hello **there**."


@pytest.fixture
def other(scripted: ScriptedAssistant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedAssistant]:
    """Another program on the same home."""
    monkeypatch.setattr(chat_screen, "STATUS_EVERY_S", 0.05)
    assistant = ScriptedAssistant(locate(tmp_path / "home"), Settings(), None)
    assistant.prepare()
    yield assistant
    assistant.close()


@asynccontextmanager
async def unseen(
    app: ClawApp, other: ScriptedAssistant, until: Until, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Pilot[None]]:
    """An app in whose chat another program has said something that it has not looked for yet."""
    monkeypatch.setattr(chat_screen, "STATUS_EVERY_S", 60.0)
    async with app.run_test(size=(100, 30)) as pilot:
        await say(pilot, app, "one", until)
        other.ask("two", chat=app.main.chat_id)
        yield pilot


def title(app: ClawApp) -> str:
    return str(app.main.top.query_one("#title").render())


def test_a_look_tells_whether_anything_was_written(scripted: ScriptedAssistant, other: ScriptedAssistant) -> None:
    database = scripted.store.database
    chat_id = scripted.ask("one").chat_id
    before, stamp = version(database), chat_stamp(database, chat_id)
    assert (version(database), chat_stamp(database, chat_id)) == (before, stamp)
    other.rename_chat(chat_id, "eggs")
    assert version(database) != before and chat_stamp(database, chat_id) == stamp
    other.feedback(other.ask("two", chat=chat_id).message_id, "good")
    assert chat_stamp(database, chat_id) != stamp
    assert chat_stamp(database, 99) == ()


async def test_what_is_said_elsewhere_comes_into_the_chat_and_the_list(
    app: ClawApp, scripted: ScriptedAssistant, other: ScriptedAssistant, until: Until
) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        bubble = await say(pilot, app, "one", until)
        await pilot.press(*"half")
        chat_id = app.main.chat_id
        other.rename_chat(chat_id, "eggs")
        other.ask("two", chat=chat_id)
        other.new_chat(title="boats")
        await until(pilot, lambda: shown(app) == ["one", REPLY, "two", REPLY] and title(app) == "eggs")
        await until(pilot, lambda: sorted(name for _, name in app.main.chats.titles()) == ["boats", "eggs"])
        assert app.main.composer.text == "half" and app.main.composer.has_focus
        assert bubble.is_attached, "what was there was not drawn anew"
        other.feedback(bubble.message_id, "good")
        await until(pilot, lambda: bubble.score == 1)
        assert not said(app), "nothing was changed that needs a word"


async def test_what_is_read_stays_where_it_is(
    app: ClawApp, scripted: ScriptedAssistant, other: ScriptedAssistant, until: Until
) -> None:
    async with app.run_test(size=(80, 16)) as pilot:
        for words in ("one", "two", "three", "four"):
            await say(pilot, app, words, until)
        transcript, first = app.main.transcript, app.main.transcript.replies()[0]
        first.focus()
        await until(pilot, lambda: first.has_focus and first.region.bottom <= transcript.region.bottom)
        await pilot.pause()
        place = first.region
        other.ask("five", chat=app.main.chat_id)
        await until(pilot, lambda: len(shown(app)) == 10)
        await pilot.pause()
        assert first.region == place and first.has_focus


async def test_what_is_sent_here_follows_what_was_said_elsewhere(
    app: ClawApp, scripted: ScriptedAssistant, other: ScriptedAssistant, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with unseen(app, other, until, monkeypatch) as pilot:
        await send(pilot, app, "three")
        await until(pilot, lambda: not app.main.sending and len(app.main.transcript.replies()) == 3)
        everything = ["one", REPLY, "two", REPLY, "three", REPLY]
        assert shown(app) == everything
        assert [message.content for message in scripted.messages(app.main.chat_id)] == everything


async def test_another_version_chosen_elsewhere_is_said(
    app: ClawApp, scripted: ScriptedAssistant, other: ScriptedAssistant, until: Until
) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        bubble = await say(pilot, app, "one", until)
        other.engine.script = ["Other."]
        other.regenerate(bubble.message_id).answer  # noqa: B018
        await until(pilot, lambda: shown(app) == ["one", "Other."])
        await until(pilot, lambda: "another version of this chat" in said(app))


async def test_a_reply_that_another_program_writes_appears_once_it_is_stored(
    app: ClawApp, scripted: ScriptedAssistant, other: ScriptedAssistant, until: Until
) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await say(pilot, app, "one", until)
        reply = other.stream("two", chat=app.main.chat_id)
        await until(pilot, lambda: shown(app) == ["one", REPLY, "two"])
        assert reply.answer.text == REPLY
        await until(pilot, lambda: shown(app) == ["one", REPLY, "two", REPLY])


async def test_of_chats_that_were_put_back_from_a_backup_nothing_comes_into_the_open_one(
    app: ClawApp, scripted: ScriptedAssistant, other: ScriptedAssistant, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with unseen(app, other, until, monkeypatch):
        monkeypatch.setattr(ScriptedAssistant, "restored", lambda self: "another content")
        await app.main.see_elsewhere()
        await app.main.catch_up()
        assert shown(app) == ["one", REPLY]
        monkeypatch.undo()
        await app.main.catch_up()
        assert shown(app) == ["one", REPLY, "two", REPLY]
