"""Notifications take the place of the lines at the bottom, and hide nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from textual.geometry import Region
from textual.widgets._toast import Toast, ToastRack

from claw_app.app import MOST_SAID, ClawApp
from claw_app.screens.ask import AskLine
from claw_app.screens.help import Help
from claw_app.screens.learning_view import LearningView
from claw_app.widgets.foot import Foot
from tests.app import drawing
from tests.app.driving import Until, said, say, send

LONG = "The model could not be loaded, because its file is damaged. Fetch it once more, or take another one. " * 3


def told(app: ClawApp) -> list[Region]:
    """Where the notifications stand on the screen that is shown."""
    racks = [child for child in app.screen.children if isinstance(child, ToastRack)]
    return [child.region for rack in racks for child in rack.walk_children() if isinstance(child, Toast)]


@pytest.mark.parametrize("words", ["The reply is copied.", LONG])
async def test_they_lie_over_the_foot_alone(app: ClawApp, scripted: Any, until: Until, words: str) -> None:
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await say(pilot, app, "hello", until)
        field = app.main.composer.region
        app.say(words, title="So it is", timeout=60)
        await until(pilot, lambda: told(app) and told(app)[0].height)
        await until(pilot, lambda: app.main.query_one(Foot).region.contains_region(told(app)[0]))
        assert not any(region.overlaps(app.main.composer.region) for region in told(app))
        assert not any(region.overlaps(app.main.transcript.region) for region in told(app))
        assert words.split()[-1] in drawing.text(app), "all of it can be read"
        if words != LONG:
            assert app.main.composer.region == field, "a short one moves nothing"
        app.clear_notifications()
        await until(pilot, lambda: app.main.composer.region == field)


async def test_they_do_not_cover_what_is_being_written(app: ClawApp, scripted: Any, until: Until) -> None:
    scripted.engine.script, scripted.engine.pause_s = ["A line of text.\n\n"] * 200, 0.1
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await send(pilot, app, "hi")
        await until(pilot, lambda: app.main.live and app.main.live.text)
        app.say(LONG, timeout=60)
        await until(pilot, lambda: told(app) and told(app)[0].height)
        for _ in range(30):
            await pilot.pause(0.03)
            seen = app.main.transcript.replies()[-1].region.intersection(app.main.transcript.region)
            assert not any(region.overlaps(seen) for region in told(app))
        await pilot.press("escape")
        await until(pilot, lambda: not app.main.sending)


@pytest.mark.parametrize("dialog", [Help, lambda: AskLine("one\n" * 50)])
@pytest.mark.parametrize("words", ["The reply is copied.", LONG])
async def test_they_stand_below_a_dialog(app: ClawApp, until: Until, dialog: Any, words: str) -> None:
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.main.status.state)
        app.push_screen(dialog())
        app.say(words, timeout=60)
        await until(pilot, lambda: told(app) and told(app)[0].height)
        await pilot.pause()
        box = app.screen.query_one(".dialog").region
        assert not any(region.overlaps(box) for region in told(app))
        assert box.y >= 0 and max(region.bottom for region in told(app)) <= 24


async def test_the_panels_of_what_was_learned_stay_in_sight(app: ClawApp, until: Until) -> None:
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.main.status.state)
        await pilot.press("ctrl+t")
        await until(pilot, lambda: isinstance(app.screen, LearningView) and app.screen.query("#learned"))
        app.say(LONG, timeout=60)
        await until(pilot, lambda: told(app) and told(app)[0].height)
        await until(pilot, lambda: not told(app)[0].overlaps(app.screen.query_one("#learned").region))


async def test_many_at_once_leave_room_for_the_chat_and_show_the_newest(app: ClawApp, until: Until) -> None:
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.main.status.state)
        for number in range(12):
            app.say(f"notification {number}", timeout=60)
        await until(pilot, lambda: "notification 11" in drawing.text(app))
        assert app.main.query_one(Foot).region.height <= MOST_SAID + 1
        assert app.main.composer.region.bottom <= 24 - MOST_SAID


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
        await until(pilot, lambda: [one.message[-1] for one in app._notifications] == ["2", "3", "4"])


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
