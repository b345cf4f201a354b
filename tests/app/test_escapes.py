"""What is typed at once behind Esc, which a terminal sends as Alt and a character."""

from __future__ import annotations

import time
from typing import Any

import pytest
from textual import events
from textual._xterm_parser import XTermParser
from textual.widgets import Input

from claw_app.app import ClawApp
from claw_app.escapes import behind_escape, keep_escapes
from claw_app.screens.ask import AskLine
from claw_app.screens.help import Help
from tests.app.driving import Until, say


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The keys that a terminal's bytes are read as."""
    monkeypatch.setattr(XTermParser, "_sequence_to_key_events", XTermParser._sequence_to_key_events)
    keep_escapes()

    def keys(sent: str) -> list[events.Key]:
        parser = XTermParser()
        read = list(parser.feed(sent))
        time.sleep(0.12)  # Textual waits for more of a sequence.
        return [one for one in (*read, *parser.tick()) if isinstance(one, events.Key)]

    return keys


@pytest.mark.parametrize("text", ["/learned", "hello", "Oh no", " a", "…", "<"])
def test_the_escape_before_a_text_is_not_forgotten(parsed: Any, text: str) -> None:
    merged, *rest = parsed("\x1b" + text)
    first = behind_escape(merged)
    assert first is not None and [key.character for key in (first, *rest)] == list(text)
    (alone,) = parsed(text[0])
    assert (first.key, first.character) == (alone.key, alone.character)
    assert behind_escape(alone) is None


def test_keys_that_only_look_like_it_are_left_alone(parsed: Any) -> None:
    assert [key.key for key in parsed("\x1b\r")] == ["alt+enter"]
    assert [key.key for key in parsed("\x1b[A\x1b\x7f")] == ["up", "ctrl+w"]
    assert [key.key for key in parsed("\x1b")] == ["escape"]
    for sent in ("\x1b\r", "\x1b[A", "\x1b[104;3u", "\x1b"):
        assert [behind_escape(key) for key in parsed(sent)] == [None]


async def test_esc_leaves_a_page_and_what_follows_at_once_is_typed_in_the_field(
    app: ClawApp, parsed: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        await pilot.press("f1")
        for sent in ("\x1b/hello", "\x1bwhat"):
            await until(pilot, lambda: isinstance(app.screen, Help) and isinstance(app.focused, Input))
            for key in parsed(sent):
                app.post_message(key)
            await until(pilot, lambda sent=sent: app.main.composer.text == sent[1:])
            assert app.screen is app.main
            app.main.composer.text = ""
            await pilot.press("f1")


async def test_esc_leaves_a_line_that_is_asked_for_and_gives_nothing(
    app: ClawApp, scripted: Any, parsed: Any, until: Until
) -> None:
    async with app.run_test() as pilot:
        bubble = await say(pilot, app, "hello", until)
        await pilot.press("f4")
        await until(pilot, lambda: isinstance(app.screen, AskLine) and isinstance(app.focused, Input))
        for key in parsed("\x1bno\r"):
            app.post_message(key)
        await until(pilot, lambda: scripted.engine.asked[-1:] == ["no"])
        assert not scripted.hints.list() and bubble.hint == ""
