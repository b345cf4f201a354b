"""What is sent while another chat is still being shown goes where the person is, and is seen. See conftest."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from claw_app.app import ClawApp
from claw_app.background import Background
from tests.app.driving import Until, in_one_go, say, shown


@pytest.fixture
def slow_store(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Every call of the store takes a moment from now on, as on a slow disk."""

    def begin() -> None:
        quick = Background.quick

        def slowly(background: Background, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
            def after_a_moment(*own: Any, **named: Any) -> Any:
                time.sleep(0.05)
                return function(*own, **named)

            return quick(background, after_a_moment, *args, **options)

        monkeypatch.setattr(Background, "quick", slowly)

    return begin


async def test_what_is_sent_right_behind_the_key_for_a_new_chat_is_shown_in_it(
    app: ClawApp, scripted: Any, until: Until, slow_store: Callable[[], None]
) -> None:
    async with app.run_test() as pilot:
        await until(pilot, app.main._ready.is_set)
        await say(pilot, app, "old", until)
        old = app.main.chat_id
        slow_store()
        await pilot.press("ctrl+n")
        in_one_go(app, "new", "enter")
        await until(pilot, lambda: app.main.chat_id not in (old, None) and not app.main.sending)
        assert shown(app) == ["new", "Hello **there**."]
        assert [one.content for one in scripted.messages(old)] == ["old", "Hello **there**."]


async def test_what_is_sent_before_going_elsewhere_stays_where_it_was_sent(
    app: ClawApp, scripted: Any, until: Until, slow_store: Callable[[], None]
) -> None:
    scripted.engine.pause_s = 0.05
    async with app.run_test() as pilot:
        await until(pilot, app.main._ready.is_set)
        await say(pilot, app, "old", until)
        old = app.main.chat_id
        slow_store()
        in_one_go(app, "more", "enter")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.main.chat_id is None and not app.main.sending)
        assert [one.content for one in scripted.messages(old)][2:] == ["more", "Hello **there**."]
        assert len(scripted.chats()) == 1
        await app.main.open_chat(old)
        await until(pilot, lambda: shown(app)[2:] == ["more", "Hello **there**."])
