"""What the screen does while a reply comes, and when it does not come. The model is a script here: see conftest."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from claw_app.app import ClawApp
from claw_app.widgets.bubbles import Bubble, Notice, Question
from claw_app.widgets.welcome import Welcome
from claw_local.errors import EngineError, ModelError, NotFoundError, StoreError
from tests.app.driving import Until, said, send


def notes(app: ClawApp) -> list[str]:
    return [str(notice.render()) for notice in app.main.query(Notice)]


async def test_the_first_start_says_what_it_is_in_four_lines(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: any("claw-local" in welcome.text for welcome in app.main.query(Welcome)))
        lines = app.main.query_one(Welcome).text.splitlines()
        assert len(lines) == 4
        assert "Learning is off" in lines[2]
        assert str(scripted.paths.data) in lines[3]


async def test_a_message_sent_while_the_model_loads_is_shown_at_once_and_answered_later(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.loading.clear()
    async with app.run_test() as pilot:
        await send(pilot, app, "hi")
        await until(pilot, lambda: app.main.query(Question))
        await until(pilot, lambda: "loading" in app.main.status.model)
        app.main.composer.text = "typed meanwhile"
        assert app.main.composer.text == "typed meanwhile"
        assert not scripted.loaded
        scripted.loading.set()
        await until(pilot, lambda: not app.main.sending)
        assert app.main.transcript.replies()[-1].raw == "Hello **there**."
        assert app.main.status.model == "Scripted"
        assert app.main.composer.text == "typed meanwhile"


async def test_once_the_model_has_loaded_the_first_reply_waits_for_its_reading_only(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        assert app.main._waiting_words() == "reading"


async def test_what_streams_is_what_is_stored_and_what_is_drawn(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.script = ["# Ti", "tle\n", "\n- o", "ne\n- tw", "o\n\n```py\nx = ", "1\n```\n"]
    scripted.engine.pause_s = 0.05
    async with app.run_test() as pilot:
        await send(pilot, app, "hi")
        await until(pilot, lambda: not app.main.sending and app.main.transcript.replies())
        bubble = app.main.transcript.replies()[0]
        assert bubble.body.source == "".join(scripted.engine.script) == bubble.raw
        assert scripted.messages(app.main.chat_id)[1].content == bubble.raw
        assert bubble.message_id == scripted.messages(app.main.chat_id)[1].id


async def test_escape_sequences_in_a_reply_never_reach_the_terminal(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.script = ["a\x1b", "[31mb", "\x1b]0;title\x07", "&#27;[2J &#13;", " `\x9b2J`"]
    async with app.run_test() as pilot:
        await send(pilot, app, "hi")
        await until(pilot, lambda: not app.main.sending and app.main.transcript.replies())
        await pilot.pause()
        drawn = "".join(
            segment.text for strip in app.screen._compositor.render_strips() for segment in strip if not segment.control
        )
        assert "ab" in drawn
        assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in drawn)


async def test_esc_stops_the_reply_and_keeps_what_came(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.script, scripted.engine.pause_s = ["word "] * 1000, 0.01
    async with app.run_test() as pilot:
        await send(pilot, app, "hi")
        await until(pilot, lambda: app.main.transcript.replies() and app.main.transcript.replies()[0].raw)
        await pilot.press("escape")
        await until(pilot, lambda: not app.main.sending, 1.0)
        stored = scripted.messages(app.main.chat_id)[1]
        assert stored.state == "interrupted"
        assert stored.content == app.main.transcript.replies()[0].raw
        assert app.main.transcript.replies()[0].state == "interrupted"


async def test_a_second_message_waits_in_the_field_until_the_reply_is_there(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.engine.script, scripted.engine.pause_s = ["word "] * 1000, 0.01
    async with app.run_test() as pilot:
        await send(pilot, app, "one")
        await until(pilot, lambda: app.main.live)
        await send(pilot, app, "two")
        await pilot.pause()
        assert app.main.composer.text == "two"
        assert "Esc stops it" in said(app)
        await pilot.press("escape")
        await until(pilot, lambda: not app.main.sending)


async def test_a_reply_goes_on_while_another_chat_is_open(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.script, scripted.engine.pause_s = [f"{number} " for number in range(200)], 0.01
    async with app.run_test() as pilot:
        await send(pilot, app, "count")
        await until(pilot, lambda: app.main.transcript.replies() and app.main.transcript.replies()[0].raw)
        chat_id = app.main.chat_id
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.main.query(Welcome))
        assert app.main.live is not None
        await app.main.open_chat(chat_id)
        await until(pilot, lambda: not app.main.sending)
        await pilot.pause()
        whole = "".join(scripted.engine.script)
        assert [bubble.raw for bubble in app.main.transcript.replies()] == [whole]
        assert app.main.transcript.replies()[0].body.source == whole


async def test_a_reply_that_fails_says_so_and_gives_the_text_back(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.render = lambda *_, **__: (_ for _ in ()).throw(EngineError("It does not fit. Shorten it."))
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await send(pilot, app, "too long")
        await until(pilot, lambda: app.main.composer.text == "too long")
        assert "It does not fit. Shorten it." in notes(app)
        assert "It does not fit. Shorten it." in said(app)
        assert app.is_running


async def test_a_message_that_cannot_be_stored_is_given_back(app: ClawApp, scripted: Any, until: Until) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise StoreError("The disk is full. Make room and send it again.")

    scripted.stream = full
    async with app.run_test() as pilot:
        await send(pilot, app, "keep me")
        await until(pilot, lambda: app.main.composer.text == "keep me")
        assert not app.main.query(Question)
        assert "The disk is full. Make room and send it again." in notes(app)


async def test_an_unexpected_error_is_a_sentence_too(app: ClawApp, scripted: Any, until: Until) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("division by zero")

    scripted.stream = broken
    async with app.run_test() as pilot:
        await send(pilot, app, "x")
        await until(pilot, lambda: app.main.composer.text == "x")
        assert any("Something unexpected went wrong (ZeroDivisionError" in note for note in notes(app))


async def test_without_a_model_the_app_stays_open_and_says_what_to_do(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.load_error = ModelError("There is no model. Install one with: pip install 'claw-local[tiny]'")
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "no model")
        assert notes(app) == ["There is no model. Install one with: pip install 'claw-local[tiny]'"]


async def test_an_unknown_chat_ends_the_app_with_its_error(scripted: Any) -> None:
    app = ClawApp(lambda: scripted, chat_id=99)
    async with app.run_test() as pilot:
        for _ in range(100):
            await pilot.pause(0.02)
            if app.opening_error:
                break
    assert isinstance(app.opening_error, NotFoundError)
    assert app.return_code == 1


async def test_notices_are_shown_in_the_chat(app: ClawApp, scripted: Any, until: Until) -> None:
    from claw_local.engine.base import Prompt

    scripted.engine.render = lambda *_, **__: Prompt((1,), dropped=4)
    async with app.run_test() as pilot:
        await send(pilot, app, "hi")
        await until(pilot, lambda: notes(app))
        assert "4 oldest messages" in notes(app)[0]


async def test_leaving_while_a_reply_streams_takes_less_than_a_second(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.engine.script, scripted.engine.pause_s = ["word "] * 10_000, 0.01
    async with app.run_test() as pilot:
        await send(pilot, app, "hi")
        await until(pilot, lambda: app.main.live and app.main.live.text)
        started = time.perf_counter()
        await pilot.press("ctrl+q")
        await pilot.pause(0.05)
    assert time.perf_counter() - started < 1.0
    assert app.leaving


async def test_leaving_while_the_model_loads_does_not_wait_for_it(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.loading.clear()
    async with app.run_test() as pilot:
        await until(pilot, lambda: "loading" in app.main.status.model)
        started = time.perf_counter()
        await pilot.press("ctrl+q")
        await pilot.pause(0.05)
    assert time.perf_counter() - started < 1.0


async def test_ctrl_c_stops_a_reply_and_leaves_when_pressed_twice(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.script, scripted.engine.pause_s = ["word "] * 1000, 0.01
    async with app.run_test() as pilot:
        await send(pilot, app, "hi")
        await until(pilot, lambda: app.main.live and app.main.live.text)
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.main.sending)
        assert app.is_running
        await pilot.press("ctrl+c", "ctrl+c")
        await pilot.pause(0.1)
        assert app.leaving


async def test_ctrl_c_throws_away_what_is_typed_and_ctrl_z_brings_it_back(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        await pilot.press(*"one", "ctrl+j", *"two", "ctrl+c")
        await until(pilot, lambda: app.main.composer.text == "")
        await pilot.press("ctrl+z")
        await until(pilot, lambda: app.main.composer.text == "one\ntwo")
        assert not app.leaving


async def test_a_link_that_is_not_a_web_address_is_not_opened(
    app: ClawApp, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(app, "open_url", opened.append)
    async with app.run_test() as pilot:
        for href in ("file:///etc/passwd", "https://example.org"):
            app.main.post_message(Bubble.LinkOpened(href))
        await until(pilot, lambda: opened)
        assert opened == ["https://example.org"]


def test_without_a_terminal_it_says_what_to_use_instead(tmp_path: Path) -> None:
    import claw_app
    from claw_local.errors import UsageError

    with pytest.raises(UsageError, match="claw-local ask"):
        claw_app.run(tmp_path)
