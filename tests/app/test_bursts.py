"""Text typed where letters are commands goes to the field; a single letter stays a command."""

from __future__ import annotations

from typing import Any

import pytest

from claw_app.app import ClawApp
from claw_app.burst import BURST_S, Burst, Kind
from tests.app.driving import Until, say, shown

KINDS: dict[str, Kind] = {"r": "changes", "d": "changes", "j": "harmless", "w": "harmless"}


def heard(keys: str, gap_s: float) -> list[str]:
    """What goes to the field at each key."""
    burst = Burst()
    return [burst.hear(key, KINDS.get(key, "nothing"), number * gap_s) for number, key in enumerate(keys)]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("no", "no"),
        ("just", "jus"),
        ("re", "re"),
        ("yr", "yr"),
        ("jr", ""),
        ("jjr", ""),
        ("ddd", ""),
        ("r", ""),
        ("rw", ""),
    ],
)
def test_keys_in_one_go_are_writing_unless_they_move_or_are_one_key_held(keys: str, text: str) -> None:
    assert next(filter(None, heard(keys, 0.05)), "") == text


def test_slow_keys_are_commands() -> None:
    assert not any(heard("rerd", BURST_S + 0.01))


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of one go, also where the machine is slow to take them."""
    monkeypatch.setattr("claw_app.burst.BURST_S", 30.0)


async def test_a_slash_on_a_message_begins_a_command_in_the_field(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        bubble.focus()
        await until(pilot, lambda: bubble.has_focus)
        await pilot.press(*"/rename Tea", "enter")
        await until(pilot, lambda: [chat.title for chat in scripted.chats()] == ["Tea"])
        assert shown(app) == ["hello", "Hello **there**."], "nothing was asked again"


async def test_writing_on_a_message_is_kept_as_text_and_changes_nothing(
    app: ClawApp, scripted: Any, until: Until, unhurried: None
) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        bubble.focus()
        await until(pilot, lambda: bubble.has_focus)
        await pilot.press(*"now red")
        await until(pilot, lambda: app.main.composer.text == "now red")
        assert app.main.composer.has_focus and len(scripted.messages(app.main.chat_id)) == 2


async def test_writing_in_the_list_deletes_nothing(app: ClawApp, scripted: Any, until: Until, unhurried: None) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        await say(pilot, app, "hello", until)
        app.main.chats.focus()
        await until(pilot, lambda: app.main.chats.has_focus)
        await pilot.press(*"ud")
        await until(pilot, lambda: app.main.composer.text == "ud")
        await pilot.pause()
        assert [chat.title for chat in scripted.chats()] == ["hello"]
