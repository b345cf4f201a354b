"""Notifications hide nothing that is written, or was said just now: see styles/dialogs.tcss for where they stand."""

from __future__ import annotations

from typing import Any

import pytest
from textual.geometry import Region
from textual.widgets._toast import Toast

from claw_app.app import ClawApp
from claw_app.notices import SAID_CELLS
from claw_app.screens.ask import AskLine
from claw_app.screens.help import Help
from claw_app.widgets.top_bar import TopBar
from tests.app import drawing
from tests.app.driving import Until, said, say, send

LONG = "The model could not be loaded, because its file is damaged. Fetch it once more, or take another one. " * 3


def told(app: ClawApp) -> list[Region]:
    """Where the notifications stand on the screen that is shown."""
    toasts = [toast for toast in app.screen.query(Toast) if toast.size]
    return [app.screen.find_widget(toast).visible_region for toast in toasts]


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (40, 14)])
@pytest.mark.parametrize("words", ["The reply is copied.", LONG])
async def test_they_stand_at_the_top_right_and_move_nothing(
    app: ClawApp, scripted: Any, until: Until, words: str, size: tuple[int, int]
) -> None:
    async with app.run_test(size=size, notifications=True) as pilot:
        scripted.engine.script = ["A line of text.\n\n"] * 40
        await say(pilot, app, "hello", until)
        app.main.composer.text = "one\n" * 40  # the field as tall as it gets
        await pilot.pause()
        kept = [app.main.composer, app.main.query_one("#foot"), app.main.query_one(TopBar)]
        before = [widget.region for widget in kept]
        app.say(words, title="So it is", timeout=60)
        await until(pilot, lambda: told(app) and told(app)[0].height)
        (region,) = told(app)
        assert region.right == size[0] and region.y == app.main.query_one(TopBar).region.bottom
        assert [widget.region for widget in kept] == before
        assert not any(region.overlaps(one) for one in before), "nor when all of it has no room"
        if size != (40, 14):
            assert words.split()[-1] in drawing.text(app), "all of it can be read"
            assert region.width <= SAID_CELLS
        app.clear_notifications()
        await until(pilot, lambda: not told(app))


@pytest.mark.parametrize("words", ["The reply is copied.", LONG])
async def test_of_a_short_chat_they_hide_nothing(app: ClawApp, scripted: Any, until: Until, words: str) -> None:
    scripted.engine.script = ["A line of text.\n\n"] * 4
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        bubble = await say(pilot, app, "hello", until)
        await pilot.pause()
        before = [widget.region for widget in (bubble, app.main.composer, app.main.query_one("#foot"))]
        app.say(words, timeout=60)
        await until(pilot, lambda: told(app) and told(app)[0].height)
        await pilot.pause()
        (region,) = told(app)
        assert region.right == 80 and region.bottom == app.main.composer.region.y
        assert region.y >= app.main.transcript.region.bottom and words.split()[-1] in drawing.text(app)
        assert [widget.region for widget in (bubble, app.main.composer, app.main.query_one("#foot"))] == before
        app.clear_notifications()
        await until(pilot, lambda: app.main.transcript.region.bottom == app.main.composer.region.y)


async def test_they_do_not_cover_what_is_being_written(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.script, scripted.engine.pause_s = ["A line of text.\n\n"] * 200, 0.02
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await send(pilot, app, "hi")
        await until(pilot, lambda: app.main.live and app.main.live.text.count("\n") > 40)
        assert "Esc stops" in drawing.text(app)
        app.say(LONG, timeout=60)
        await until(pilot, lambda: told(app) and told(app)[0].height)
        for _ in range(10):
            await pilot.pause(0.03)
            chat = app.main.transcript.region
            assert told(app)[0].bottom < chat.bottom - chat.height // 2
        await pilot.press("escape")
        await until(pilot, lambda: not app.main.sending and "Esc stops" not in drawing.text(app))


@pytest.mark.parametrize("dialog", [Help, lambda: AskLine("one\n" * 50)])
@pytest.mark.parametrize("words", ["The reply is copied.", LONG])
async def test_they_stand_above_a_dialog(app: ClawApp, until: Until, dialog: Any, words: str) -> None:
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.main.status.state)
        app.push_screen(dialog())
        app.say(words, timeout=60)
        await until(pilot, lambda: told(app) and told(app)[0].height)
        await pilot.pause()
        box = app.screen.query_one(".dialog").region
        assert not any(region.overlaps(box) for region in told(app))
        assert min(region.y for region in told(app)) >= 0 and box.bottom <= 24


async def test_what_was_said_just_before_a_dialog_opens_is_drawn_once(app: ClawApp, until: Until) -> None:
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.main.status.state)
        app.say("A word before the dialog.", timeout=60)
        await until(pilot, lambda: "A word before" in drawing.text(app))
        app.push_screen(AskLine("What?"))
        await until(pilot, lambda: "What?" in drawing.text(app) and told(app) and told(app)[0].height)
        await until(pilot, lambda: drawing.text(app).count("A word before") == 1)
        app.say("A word over it.", timeout=60)
        await until(pilot, lambda: drawing.text(app).count("A word over it") == 1)
        assert drawing.text(app).count("A word before") == 1
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main and drawing.text(app).count("A word over it") == 1)
        assert drawing.text(app).count("A word before") == 1


async def test_of_many_the_newest_two_stay_and_of_long_ones_the_newest(app: ClawApp, until: Until) -> None:
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.main.status.state)
        for number in range(12):
            app.say(f"notification {number}", timeout=60)
        await until(pilot, lambda: "notification 11" in drawing.text(app))
        assert [one.message for one in app._notifications] == ["notification 10", "notification 11"]
        app.say(LONG, timeout=60)
        app.say("the latest word", timeout=60)
        await until(pilot, lambda: "the latest word" in drawing.text(app))
        assert [one.message for one in app._notifications] == [LONG, "the latest word"]
        app.say(LONG, title="Once more", timeout=60)
        await until(pilot, lambda: "Once more" in drawing.text(app))
        assert [one.message for one in app._notifications] == ["the latest word", LONG]
        app.say("A second long one. " * 15, timeout=60)
        await until(pilot, lambda: "A second long one" in drawing.text(app))
        assert len(app._notifications) == len(told(app)) == 1


async def test_in_a_very_low_terminal_the_messages_and_the_field_are_all_there_is(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test(size=(20, 5), notifications=True) as pilot:
        await say(pilot, app, "hello", until)
        await pilot.press(*"and now?")
        await pilot.pause()
        assert "Hello there." in drawing.text(app)
        assert "and now?" in drawing.text(app)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "learning off" in drawing.text(app) and "╰" in drawing.text(app))


async def test_the_same_words_stand_there_once_and_go_when_they_are_no_longer_so(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.engine.script, scripted.engine.pause_s = ["on "] * 400, 0.02
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await send(pilot, app, "hi")
        await until(pilot, lambda: app.main.live and app.main.live.text)
        for _ in range(2):
            await send(pilot, app, "more")
        await until(pilot, lambda: "still being written" in said(app))
        assert len(app._notifications) == 1
        await pilot.press("escape")
        await until(pilot, lambda: not app.main.sending and "still being written" not in said(app))
        for number in range(5):
            app.say(f"notification {number}", timeout=60)
        await until(pilot, lambda: [one.message[-1] for one in app._notifications] == ["3", "4"])


@pytest.mark.parametrize("where", ["reply", "list"])
async def test_help_stands_in_the_last_line_and_under_a_dialog_no_key_does(
    app: ClawApp, until: Until, where: str
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        bubble = await say(pilot, app, "hello", until)
        app.main.sidebar.display = where == "list"
        (bubble if where == "reply" else app.main.chats).focus()
        await until(pilot, lambda: "f1 Help" in drawing.text(app))
        assert "^n New" in drawing.text(app)
        app.push_screen(AskLine("What?"))
        await until(pilot, lambda: "What?" in drawing.text(app) and "^n New" not in drawing.text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "^n New" in drawing.text(app))


async def test_home_and_end_scroll_the_help_whose_keys_take_no_more_room_than_they_need(
    app: ClawApp, until: Until
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, Help) and "/new" in drawing.text(app))
        line = next(line for line in drawing.text(app).splitlines() if "/new " in line)
        assert line.index("/new") < 20
        await pilot.press("end")
        await until(pilot, lambda: "NO_COLOR=1" in drawing.text(app))
        await pilot.press("home")
        await until(pilot, lambda: "/new" in drawing.text(app))
