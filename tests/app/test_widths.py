"""Right-to-left words, combining marks, emoji of several parts: as wide as terminals draw them, wherever they stand."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len

from claw_app.app import ClawApp
from claw_app.text import clean
from tests.app import drawing
from tests.app.driving import Until, say

WORDS = {
    "שלום עולם": 9,
    "مرحبا": 5,
    "e\u0301": 1,  # e and a combining acute
    "นี้": 1,
    "한국어": 6,
    "👩‍🍳": 2,
    "👨‍👩‍👧‍👦": 2,
    "🏳️‍🌈": 2,
    "👍🏽": 2,
    "🇳🇴": 2,
    "❤️": 2,
    "1️⃣": 2,
    "\u200f": 0,  # a mark of direction
}
MIXED = "x ".join(WORDS)


@pytest.mark.parametrize("words", WORDS)
def test_each_is_as_wide_as_a_terminal_draws_it(words: str) -> None:
    assert cell_len(words) == WORDS[words]
    assert clean(words) == words, "none of it is taken for something that steers the terminal"


def test_marks_that_turn_the_direction_of_what_follows_are_taken_out() -> None:
    assert clean("abc\u202edef\u2066ghi") == "abcdefghi"


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (31, 12)])
async def test_no_line_is_wider_or_narrower_than_the_screen(
    app: ClawApp, scripted: Any, until: Until, size: tuple[int, int]
) -> None:
    scripted.engine.script = [f"{MIXED}\n\n- {MIXED}\n\n| {MIXED[:9]} | b |\n|---|---|\n| 👩‍🍳 | {MIXED[9:20]} |\n"]
    async with app.run_test(size=size) as pilot:
        bubble = await say(pilot, app, MIXED, until)
        assert bubble.raw.startswith(MIXED)
        await until(pilot, app.main.chats.titles)
        app.main.composer.text = MIXED
        app.main.sidebar.display = True
        await pilot.press("end")
        await pilot.pause()
        lines = drawing.lines(app)
        assert {cell_len(line) for line in lines} == {size[0]}
        # A border behind such words stands where it stands on the lines without any.
        ends = {cell_len(line.rstrip()) for line in lines if line.rstrip().endswith(("╮", "│", "╯"))}
        assert len(ends) == 1


async def test_the_cursor_steps_over_what_is_drawn_as_one(app: ClawApp) -> None:
    async with app.run_test() as pilot:
        app.main.composer.text = "👩‍🍳e\u0301x"
        app.main.composer.move_cursor(app.main.composer.document.end)
        await pilot.press("backspace")
        assert app.main.composer.text == "👩‍🍳e\u0301"
        assert app.main.composer.cursor_screen_offset.x - app.main.composer.content_region.x == 3
