"""The field to type in: what Enter, new lines, pastes and the arrows do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from textual import events

from claw_app.app import ClawApp

Until = Callable[..., Any]


async def test_enter_sends_and_empties_the_field(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        await pilot.press("h", "i", "enter")
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked == ["hi"]
        assert app.main.composer.text == ""


async def test_ctrl_j_and_shift_enter_begin_a_new_line_and_the_field_grows(app: ClawApp) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        await pilot.press("a", "ctrl+j", "b", "shift+enter", "c")
        await pilot.pause()
        assert composer.text == "a\nb\nc"
        assert composer.size.height == 3
        composer.text = "\n".join(map(str, range(40)))
        await pilot.pause()
        assert composer.outer_size.height <= 24 * 0.4


async def test_an_empty_field_sends_nothing(app: ClawApp, scripted: Any) -> None:
    async with app.run_test() as pilot:
        await pilot.press("space", "enter")
        await pilot.pause(0.1)
        assert scripted.chats() == []


async def test_a_paste_of_a_megabyte_costs_nothing_and_is_sent_whole(app: ClawApp, scripted: Any, until: Until) -> None:
    paste = "0123456789abcde\n" * 65_536
    async with app.run_test() as pilot:
        composer = app.main.composer
        started = time.perf_counter()
        composer.post_message(events.Paste(paste))
        await pilot.pause()
        await pilot.press("!", "enter")
        assert time.perf_counter() - started < 1.5
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked == [paste.strip() + "\n!"] or scripted.engine.asked == [paste + "!"]


async def test_a_short_paste_is_cleaned_and_put_in_as_it_is(app: ClawApp) -> None:
    async with app.run_test() as pilot:
        app.main.composer.post_message(events.Paste("two\r\nlines\x1b[2J"))
        await pilot.pause()
        assert app.main.composer.text == "two\nlines"


async def test_up_brings_back_what_was_sent(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        composer = app.main.composer
        for word in ("one", "two"):
            await pilot.press(*word, "enter")
            await until(pilot, lambda: not app.main.sending)
        await pilot.press("up")
        assert composer.text == "two"
        await pilot.press("up")
        assert composer.text == "one"
        await pilot.press("down", "down")
        assert composer.text == ""
        await pilot.press(*"draft", "up")
        assert composer.text == "draft"


async def test_ctrl_d_leaves_only_from_an_empty_field(app: ClawApp) -> None:
    async with app.run_test() as pilot:
        await pilot.press("a", "ctrl+d")
        await pilot.pause(0.1)
        assert app.is_running
        await pilot.press("backspace", "ctrl+d")
        await pilot.pause(0.2)
        assert app.leaving


async def test_enter_never_overtakes_letters_typed_just_before_it(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        for letter in "fast":
            app.post_message(events.Key(letter, letter))
        app.post_message(events.Key("enter", "\r"))
        await until(pilot, lambda: scripted.engine.asked)
        assert scripted.engine.asked == ["fast"]
