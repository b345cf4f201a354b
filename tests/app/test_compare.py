"""One question, two adapters, blind. The model is a script here, which says who was asked only to the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, Select

from claw_app.app import ClawApp
from claw_app.screens.compare import CompareScreen
from claw_app.widgets.bubbles import Bubble
from tests.app.driving import Until, said


@pytest.fixture
def adapter(scripted: Any, tmp_path: Path) -> int:
    """An adapter whose file exists; what it says is a script, too."""
    scripted.engine.adapted = ["Good ", "**morning**", "."]
    file = tmp_path / "adapter.gguf"
    file.write_bytes(b"GGUF")
    record = scripted.store.adapters.add(
        parent_id=0, model_sha256="0" * 64, architecture="llama", gguf_path=str(file), state="active"
    )
    return int(record.id)


def note(app: ClawApp) -> str:
    return str(app.screen.query_one("#say").render())


async def compare(pilot: Any, app: ClawApp, until: Until) -> CompareScreen:
    await until(pilot, lambda: app.main.status.model == "Scripted")
    app.main.composer.text = "Which is better?"
    app.main.action_compare()
    await until(pilot, lambda: isinstance(app.screen, CompareScreen) and app.screen.query("#say"))
    screen = app.screen
    assert isinstance(screen, CompareScreen)
    assert screen.query_one("#question", Input).value == "Which is better?"
    await pilot.press("enter")
    return screen


async def test_a_vote_counts_for_both_and_only_then_the_names_are_told(
    app: ClawApp, scripted: Any, adapter: int, until: Until
) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await compare(pilot, app, until)
        await until(pilot, lambda: "Which is better?" in note(app))
        assert {bubble.raw for bubble in screen.query(Bubble)} == {"Hello **there**.", "Good **morning**."}
        titles = [str(screen.query_one(f"#side-{number}").border_title) for number in (0, 1)]
        assert titles == ["Left", "Right"]
        await pilot.press("right")
        await until(pilot, lambda: "You preferred" in note(app))
        told = {str(screen.query_one(f"#side-{number}").border_title).partition(": ")[2] for number in (0, 1)}
        assert told == {f"adapter {adapter}", "the base model"}
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main and app.main.transcript.replies())
        shown = app.main.transcript.replies()[0]
        left, right = shown.versions
        scores = {one: [signal.score for signal in signals] for one, signals in scripted.signals([left, right]).items()}
        assert shown.message_id == right
        assert scores == {left: [-1], right: [1]}
        assert app.main.composer.text == ""


async def test_a_tie_counts_for_neither(app: ClawApp, scripted: Any, adapter: int, until: Until) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        await compare(pilot, app, until)
        await until(pilot, lambda: "Which is better?" in note(app))
        await pilot.press("down")
        await until(pilot, lambda: "A tie" in note(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main and app.main.transcript.replies())
        versions = app.main.transcript.replies()[0].versions
        assert len(versions) == 2
        assert not any(scripted.signals(versions).values())


async def test_where_both_answers_are_the_same_no_vote_counts_and_it_asks_again(
    app: ClawApp, scripted: Any, adapter: int, until: Until
) -> None:
    other, scripted.engine.adapted = scripted.engine.adapted, ()
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await compare(pilot, app, until)
        await until(pilot, lambda: "Both answers are the same" in note(app))
        first = [bubble.raw for bubble in screen.query(Bubble)]
        assert first == ["Hello **there**."] * 2
        await pilot.press("right", "down")
        assert "Both answers are the same" in note(app)
        scripted.engine.adapted = other
        await pilot.press("r")
        await until(pilot, lambda: "Which is better?" in note(app))
        assert len({bubble.raw for bubble in screen.query(Bubble)}) == 2
        await pilot.press("r", "left")
        await until(pilot, lambda: "You preferred" in note(app))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main and app.main.transcript.replies())
        versions = app.main.transcript.replies()[0].versions
        signals = scripted.signals(versions)
        assert [[signal.score for signal in signals[one]] for one in versions] == [[], [], [1], [-1]]
        assert scripted.engine.asked == ["Which is better?"] * 4


async def test_esc_stops_the_comparison_and_there_is_no_vote(
    app: ClawApp, scripted: Any, adapter: int, until: Until
) -> None:
    scripted.engine.script, scripted.engine.adapted, scripted.engine.pause_s = ["word "] * 1000, (), 0.01
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await compare(pilot, app, until)
        await until(pilot, lambda: screen.query(Bubble) and screen.query(Bubble).first().raw)
        await pilot.press("escape")
        await until(pilot, lambda: "no vote" in note(app))
        await pilot.press("left")
        assert "You preferred" not in note(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main and app.main.transcript.replies())
        versions = scripted.versions(app.main.transcript.replies()[0].message_id)
        assert {scripted.store.messages.get(one).state for one in versions} == {"interrupted"}
        assert not any(scripted.signals(versions).values())


async def test_the_same_adapter_on_both_sides_is_refused(
    app: ClawApp, scripted: Any, adapter: int, until: Until
) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        app.main.action_compare()
        await until(pilot, lambda: isinstance(app.screen, CompareScreen) and app.screen.query("#choice-1 #label"))
        app.screen.query_one("#choice-1", Select).value = adapter
        app.screen.query_one("#question", Input).value = "x"
        await pilot.press("enter")
        await until(pilot, lambda: "Both sides are the same" in note(app))
        assert scripted.chats() == []


async def test_narrow_terminals_stack_the_answers(app: ClawApp, adapter: int, until: Until) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await compare(pilot, app, until)
        await until(pilot, lambda: "Which is better?" in note(app))
        left, right = (screen.query_one(f"#side-{number}").region for number in (0, 1))
        assert left.x == right.x and left.bottom <= right.y


async def test_without_an_adapter_it_says_where_one_comes_from(app: ClawApp, until: Until) -> None:
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        app.main.action_compare()
        await until(pilot, lambda: "only the base model" in said(app))
