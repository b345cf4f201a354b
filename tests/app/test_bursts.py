"""Text typed where letters are commands goes to the field; a single letter stays a command."""

from __future__ import annotations

from typing import Any

import pytest
from textual import events
from textual.widgets import Input

from claw_app.app import ClawApp
from claw_app.burst import BURST_S, Burst, Heard, Kind
from claw_app.commands import COMMANDS, MOVING
from claw_app.screens.ask import AskLine
from claw_app.screens.why import WhyScreen
from claw_app.widgets.bubbles import Bubble
from claw_app.widgets.editor import Editor
from tests.app.driving import Until, in_one_go, say, shown

STAYING = {
    *("toggle_chats", "new_chat", "delete_chat", "new_incognito", "undo_delete", "stop", "learn_now", "good", "bad")
}
"""Of what moves the focus: what goes to the field, opens something only now and then, or sends writing back there."""
KINDS: dict[str, Kind] = {"r": "changes", "d": "changes", "j": "harmless", "w": "harmless"}


def heard(keys: str, gap_s: float) -> list[Heard]:
    """What is to be done at each key."""
    burst = Burst()
    return [burst.hear(key, KINDS.get(key, "nothing"), number * gap_s) for number, key in enumerate(keys)]


def done(keys: str, gap_s: float) -> str:
    """The commands that are carried out, in their order, without one that is kept at the end."""
    carried_out, held = "", ""
    for key, one in zip(keys, heard(keys, gap_s), strict=True):
        carried_out += held if one.release else ""
        held = key if one.hold else "" if one.release or one.text else held
        carried_out += "" if one.hold or one.text or key not in KINDS else key
    return carried_out


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
        ("rj", ""),
    ],
)
def test_keys_in_one_go_are_writing_unless_they_move_or_are_one_key_held(keys: str, text: str) -> None:
    assert next(filter(None, (one.text for one in heard(keys, 0.05))), "") == text


@pytest.mark.parametrize(
    ("keys", "commands"),
    [("r", ""), ("re", ""), ("rx", ""), ("rj", "rj"), ("dd", "dd"), ("dddd", "dddd"), ("jr", "j"), ("ddxy", "dd")],
)
def test_a_key_that_changes_something_is_kept_until_it_is_known_to_be_no_letter(keys: str, commands: str) -> None:
    assert done(keys, 0.05) == commands


def test_what_was_done_is_not_written_too() -> None:
    assert [one.text for one in heard("dddxy", 0.05)] == ["", "", "", "", "xy"]


def test_slow_keys_are_commands() -> None:
    slow = heard("rerd", BURST_S + 0.01)
    assert not any(one.text for one in slow)
    assert done("rjrd", BURST_S + 0.01) == "rjr", "each comes before the next one"


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


async def on_a_reply(pilot: Any, app: ClawApp, until: Until) -> Bubble:
    bubble = app.main.transcript.replies()[-1] if app.main.transcript.replies() else await say(pilot, app, "hi", until)
    bubble.focus()
    await until(pilot, lambda: app.focused is bubble)
    await pilot.pause()
    return bubble


async def test_the_first_letter_of_a_word_is_no_command(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        for words in ("hello there", "regenerate", "-5 or +5", "/what is this", "3 what is this"):
            bubble = await on_a_reply(pilot, app, until)
            in_one_go(app, words)
            await until(pilot, lambda words=words: app.main.composer.text == words)
            app.main.composer.text = ""
        await pilot.pause(BURST_S + 0.1)
        assert app.screen is app.main and app.main.composer.has_focus and bubble.score is None
        assert shown(app) == ["hi", "Hello **there**."] and not app._notifications


async def test_a_letter_alone_does_its_work_after_a_moment_and_what_follows_comes_after_it(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        bubble = await on_a_reply(pilot, app, until)
        in_one_go(app, "+")
        await pilot.pause()
        assert bubble.score is None
        await until(pilot, lambda: bubble.score == 1)
        in_one_go(app, "-", "escape")
        await until(pilot, lambda: bubble.score == -1 and app.main.composer.has_focus)
        assert app.main.composer.text == ""
        await on_a_reply(pilot, app, until)
        in_one_go(app, "+", "up")
        await until(pilot, lambda: bubble.score == 1 and app.focused is not bubble)
        await on_a_reply(pilot, app, until)
        in_one_go(app, "h")
        await until(pilot, lambda: isinstance(app.screen, AskLine))


async def test_a_kept_letter_goes_where_the_focus_has_gone_meanwhile(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test() as pilot:
        bubble = await on_a_reply(pilot, app, until)
        in_one_go(app, "+")
        await until(pilot, lambda: app.main._held is not None)
        app.main.set_focus(app.main.composer)
        await until(pilot, lambda: app.main._held is None)
        await until(pilot, lambda: app.main.composer.text == "+")
        assert bubble.score is None


async def test_a_key_right_behind_the_one_that_opens_the_list_is_the_lists(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    scripted.new_chat(title="eggs")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, app.main._ready.is_set)
        for key in (events.Key("ctrl+o", None), events.Key("r", "r")):
            app.post_message(key)
        await until(pilot, lambda: app.main.focused is app.main.chats)
        await pilot.pause(BURST_S + 0.1)
        assert app.main.composer.text == ""


@pytest.mark.parametrize("typing", [False, True])
async def test_letters_right_behind_a_key_that_opens_something_never_go_to_the_field(
    app: ClawApp, scripted: Any, until: Until, typing: bool
) -> None:
    """Every key of the table that opens a page or moves the focus away, and Ctrl+P."""
    away = [command.keys for command in COMMANDS if command.keys and command.action in MOVING - STAYING]
    async with app.run_test(size=(100, 30)) as pilot:
        await say(pilot, app, "hello", until)
        for key in [*away, "ctrl+p"]:
            begun = app.main.composer if typing else app.main.transcript.replies()[-1]
            app.main.set_focus(begun)
            in_one_go(app, "", key)
            in_one_go(app, "vz")
            await until(pilot, lambda begun=begun: app.screen is not app.main or app.focused is not begun)
            await until(pilot, lambda: not app.gate.shut)
            await pilot.pause()
            there = app.focused
            assert app.screen is not app.main or there is not app.main.composer, f"{key} opens something"
            assert app.main.composer.text == "", f"behind {key}"
            if isinstance(there, Input):
                await until(pilot, lambda there=there: there.value.endswith("vz"))
                there.value = ""
            await until(pilot, lambda: not app.gate.shut)
            while app.screen is not app.main:
                await pilot.press("escape")
            for editor in app.main.query(Editor):
                editor.action_leave()
                editor.action_leave()
            await until(pilot, lambda: not app.main.query(Editor))
            app.main.composer.text = ""


async def test_what_is_typed_before_and_behind_ctrl_n_is_kept_apart(app: ClawApp, scripted: Any, until: Until) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await say(pilot, app, "hello", until)
        first = app.main.chat_id
        in_one_go(app, "old", "ctrl+n")
        in_one_go(app, "new")
        await until(pilot, lambda: app.main.composer.text == "new" and app.main.chat_id is None)
        await until(pilot, lambda: scripted.chat(first).draft == "old")


async def test_what_is_typed_behind_the_key_that_closes_a_page_goes_to_the_field(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, app.main._ready.is_set)
        in_one_go(app, "", "f1", "f1")
        in_one_go(app, "hi")
        await until(pilot, lambda: app.main.composer.text == "hi" and app.screen is app.main)


async def test_letters_behind_the_one_that_asks_for_words_on_a_page_are_those_words(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, app.main._ready.is_set)
        in_one_go(app, "", "ctrl+t")
        in_one_go(app, "2abe brief", "enter")
        await until(pilot, lambda: [hint.text for hint in scripted.hints.list()] == ["be brief"])


async def test_letters_behind_a_command_that_asks_for_words_are_those_words(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await say(pilot, app, "hello", until)
        in_one_go(app, "/rename", "enter")
        in_one_go(app, "Snow", "enter")
        in_one_go(app, "and on")
        await until(pilot, lambda: scripted.chat(app.main.chat_id).title == "helloSnow")
        await until(pilot, lambda: app.main.composer.text == "and on")


async def test_letters_behind_a_message_and_behind_a_command_that_opens_nothing_stay_in_the_field(
    app: ClawApp, scripted: Any, until: Until
) -> None:
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, app.main._ready.is_set)
        in_one_go(app, "hello", "enter")
        in_one_go(app, "/good", "enter")
        in_one_go(app, "and on")
        await until(pilot, lambda: app.main.composer.text == "and on" and not app.main.sending)


@pytest.mark.parametrize("arrow", ["up", "k"])
async def test_a_letter_right_behind_an_arrow_is_meant_for_where_that_goes(
    app: ClawApp, until: Until, arrow: str
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await say(pilot, app, "hello", until)
        bubble = await say(pilot, app, "and now", until)
        bubble.focus()
        await until(pilot, lambda: app.focused is bubble)
        app.post_message(events.Key(arrow, "k" if arrow == "k" else None))
        await pilot.pause(0)
        app.post_message(events.Key("w", "w"))
        await until(pilot, lambda: isinstance(app.screen, WhyScreen) or app.main.composer.text)
        assert isinstance(app.screen, WhyScreen) and not app.main.composer.text


async def test_a_letter_right_behind_tab_is_meant_for_the_reply(app: ClawApp, until: Until) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await say(pilot, app, "hello", until)
        in_one_go(app, "", "tab")
        in_one_go(app, "w")
        await until(pilot, lambda: isinstance(app.screen, WhyScreen) or app.main.composer.text)
        assert isinstance(app.screen, WhyScreen) and not app.main.composer.text
