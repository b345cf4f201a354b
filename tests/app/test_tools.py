"""Tools in the chat: what is called is asked about, shown folded, kept and undone. The model is a script."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claw_app.app import ClawApp
from claw_app.screens import approve
from claw_app.screens.approve import Approve
from claw_app.widgets.bubbles import Bubble
from claw_app.widgets.tool_use import ToolUse
from claw_local.engine.base import Generation
from claw_local.memory.prompt import written
from tests.app import drawing
from tests.app.driving import Until, said, send, shown

SIZE = (80, 24)


def call(name: str, **arguments: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def script(assistant: Any, *replies: str) -> None:
    """One reply after the other; the last for all that follow."""
    waiting = list(replies)
    generate = type(assistant.engine).generate.__get__(assistant.engine)

    def next_one(*args: Any, **options: Any) -> tuple[Generation, Iterator[str]]:
        assistant.engine.script = [waiting.pop(0) if len(waiting) > 1 else waiting[0]]
        begun: tuple[Generation, Iterator[str]] = generate(*args, **options)
        return begun

    assistant.engine.generate = next_one


@pytest.fixture
def work(scripted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace of the chat that opens."""
    monkeypatch.setattr(approve, "SETTLE_S", 0.0)
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("milk\neggs\n", "utf-8")
    return folder


@pytest.fixture
def app(scripted: Any, work: Path) -> ClawApp:
    return ClawApp(lambda: scripted, workspace=str(work))


def lines(app: ClawApp) -> list[ToolUse]:
    return list(app.main.query(ToolUse))


async def opened(pilot: Any, app: ClawApp, until: Until) -> None:
    await until(pilot, lambda: app.main.pending is not None)


async def asked(pilot: Any, app: ClawApp, until: Until) -> None:
    await until(pilot, lambda: isinstance(app.screen, Approve))
    await pilot.pause()


async def answered(pilot: Any, app: ClawApp, until: Until) -> None:
    await until(pilot, lambda: not app.main.sending)
    await pilot.pause()


async def test_what_only_looks_asks_nobody_and_is_folded(scripted: Any, app: ClawApp, until: Until) -> None:
    script(scripted, "Let me look. " + call("read", path="notes.txt"), "Milk and eggs.")
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, app, until)
        await send(pilot, app, "What is in my notes?")
        await answered(pilot, app, until)
        assert shown(app) == ["What is in my notes?", "Let me look.", "Milk and eggs."]
        (line,) = lines(app)
        assert (line.state, line.raw, str(line.render())) == ("done", "milk\neggs", "▸ read notes.txt ✓")
        assert "tool_call" not in drawing.text(app)
        line.focus()
        await pilot.press("enter")
        assert "milk\neggs" in str(line.render()) and line.open
        await pilot.press("enter")
        assert "milk" not in str(line.render())
        assert "in work/" in drawing.text(app)


async def test_marks_that_a_reply_repeats_from_its_prompt_are_neither_shown_nor_kept(
    scripted: Any, app: ClawApp, until: Until
) -> None:
    script(scripted, call("read", path="notes.txt"), "<tool_response>\nMilk and **eggs**.\n</tool_response>")
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, app, until)
        await send(pilot, app, "What is in notes.txt?")
        await answered(pilot, app, until)
        assert [words.strip() for words in shown(app)][-1] == "Milk and **eggs**."
        reply = scripted.messages(app.main.chat_id)[-1]
        assert reply.content == "Milk and **eggs**." and reply.sampling["cut"]
        assert written(reply, reply.model_sha256) == (), "it goes on as it is shown, not as its tokens"


async def test_writing_shows_the_diff_and_waits_for_a_yes(
    scripted: Any, app: ClawApp, work: Path, until: Until
) -> None:
    script(scripted, call("write", path="notes.txt", content="milk\nbread\n"), "Written.")
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, app, until)
        await send(pilot, app, "Bread in place of eggs, please.")
        await asked(pilot, app, until)
        text = drawing.text(app)
        assert "May it write notes.txt?" in text and "-eggs" in text and "+bread" in text
        assert "y once · a always in this chat" in text and "Esc no, and stop" in text
        assert (work / "notes.txt").read_text() == "milk\neggs\n"
        await pilot.press("enter", "space", "x")
        assert isinstance(app.screen, Approve), "nothing but its keys answers"
        await pilot.press("y")
        await answered(pilot, app, until)
        assert (work / "notes.txt").read_text() == "milk\nbread\n"
        assert shown(app)[-1] == "Written." and lines(app)[0].title == "write notes.txt"
        await send(pilot, app, "/undo")
        await until(pilot, lambda: (work / "notes.txt").read_text() == "milk\neggs\n")
        await until(pilot, lambda: lines(app)[0].state == "undone")
        assert "notes.txt is as it was." in said(app)


async def test_no_and_why_reaches_the_model_and_nothing_is_done(
    scripted: Any, app: ClawApp, work: Path, until: Until
) -> None:
    script(scripted, call("write", path="notes.txt", content=""), "Then I leave it.")
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, app, until)
        await send(pilot, app, "Empty it.")
        await asked(pilot, app, until)
        await pilot.press("w", *"keep y eggs".replace(" ", "_"), "enter")
        await answered(pilot, app, until)
        assert (work / "notes.txt").read_text() == "milk\neggs\n"
        (line,) = lines(app)
        assert line.state == "declined" and "keep_y_eggs" in line.raw
        assert shown(app)[-1] == "Then I leave it."


async def test_esc_stops_and_the_chat_goes_on_with_the_next_message(
    scripted: Any, app: ClawApp, work: Path, until: Until
) -> None:
    script(scripted, call("run", command="touch x"), "Never said.")
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, app, until)
        await send(pilot, app, "Do it.")
        await asked(pilot, app, until)
        assert "without a shell:" in drawing.text(app) and "this very command" in drawing.text(app)
        await pilot.press("escape")
        await answered(pilot, app, until)
        assert not (work / "x").exists() and shown(app)[-1] != "Never said."
        script(scripted, "All right.")
        await send(pilot, app, "Leave it.")
        await until(pilot, lambda: shown(app)[-1] == "All right.")


async def test_a_command_of_any_length_leaves_room_for_itself_and_for_the_keys(
    scripted: Any, app: ClawApp, until: Until
) -> None:
    script(scripted, call("run", command="echo " + "x " * 1500 + "the-end"), "Never said.")
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, app, until)
        await send(pilot, app, "Run it.")
        await asked(pilot, app, until)
        text = drawing.text(app)
        assert "May it run echo x x" in text and "without a shell:" in text and "Esc no, and stop" in text
        await pilot.press("end")
        await until(pilot, lambda: "the-end" in drawing.text(app))
        await pilot.press("escape")
        await answered(pilot, app, until)


async def test_always_asks_once_in_a_chat(scripted: Any, app: ClawApp, work: Path, until: Until) -> None:
    more = call("append", path="log.txt", content="x\n")
    script(scripted, more, more, "Twice.")
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, app, until)
        await send(pilot, app, "Twice, please.")
        await asked(pilot, app, until)
        await pilot.press("a")
        await answered(pilot, app, until)
        assert (work / "log.txt").read_text() == "x\nx\n" and len(lines(app)) == 2


async def test_keys_typed_in_haste_agree_to_nothing(
    scripted: Any, app: ClawApp, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approve, "SETTLE_S", 60.0)
    script(scripted, call("run", command="true"), "Done.")
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, app, until)
        await send(pilot, app, "Run it.")
        await asked(pilot, app, until)
        await pilot.press("y", "a", "n", "escape")
        assert isinstance(app.screen, Approve)
        monkeypatch.setattr(approve, "SETTLE_S", 0.0)
        await pilot.press("n")
        await answered(pilot, app, until)


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX command")
async def test_esc_stops_a_command_at_work(scripted: Any, app: ClawApp, until: Until) -> None:
    script(scripted, call("run", command="sleep 60"), "Never said.")
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, app, until)
        await send(pilot, app, "Sleep.")
        await asked(pilot, app, until)
        await pilot.press("y")
        await until(pilot, lambda: [line.state for line in lines(app)] == ["running"])
        assert "at work; Esc stops it" in drawing.text(app)
        began = time.monotonic()
        await pilot.press("escape")
        await answered(pilot, app, until)
        assert time.monotonic() - began < 10 and "stopped by the person" in lines(app)[0].raw
        assert lines(app)[0].state == "stopped" and "sleep 60 – stopped" in drawing.text(app)


async def test_quitting_stops_a_command_at_work(scripted: Any, app: ClawApp, until: Until) -> None:
    script(scripted, call("run", command="sleep 60"), "Never said.")
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, app, until)
        await send(pilot, app, "Sleep.")
        await asked(pilot, app, until)
        await pilot.press("y")
        await until(pilot, lambda: [line.state for line in lines(app)] == ["running"])
        stop = app.main._tool_stop
        await pilot.press("ctrl+q")
        assert stop is not None and stop.is_set()


async def test_a_chat_opened_again_shows_its_tools_folded(scripted: Any, work: Path, until: Until) -> None:
    script(scripted, call("list"), "One file.")
    chat_id = scripted.tools.give(scripted.new_chat(title="Work").id, work).id
    list(scripted.tools.work("What is there?", lambda prepared: ("no", ""), chat=chat_id))
    app = ClawApp(lambda: scripted, chat_id=chat_id)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: lines(app))
        assert str(lines(app)[0].render()) == "▸ list the workspace ✓"
        assert [bubble.display for bubble in app.main.query(Bubble)] == [False, True]
        assert "tool_call" not in drawing.text(app)


async def test_the_workspace_is_given_and_taken_by_its_command(
    scripted: Any, work: Path, tmp_path: Path, until: Until
) -> None:
    app = ClawApp(lambda: scripted)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.main.transcript.query("Welcome"))
        await send(pilot, app, f"/workspace {tmp_path / 'none'}")
        await until(pilot, lambda: "There is no folder" in said(app))
        await send(pilot, app, f"/workspace {work}")
        await until(pilot, lambda: app.main.pending is not None)
        script(scripted, "Hello.")
        await send(pilot, app, "Hello.")
        await until(pilot, lambda: not app.main.sending and app.main.chat_id)
        assert scripted.chat(app.main.chat_id).workspace == str(work)
        await send(pilot, app, "/workspace none")
        await until(pilot, lambda: scripted.chat(app.main.chat_id).workspace == "")


async def test_without_a_workspace_what_looks_like_a_call_is_text(scripted: Any, until: Until) -> None:
    app = ClawApp(lambda: scripted)
    script(scripted, call("list"))
    async with app.run_test(size=SIZE) as pilot:
        await send(pilot, app, "Hello.")
        await answered(pilot, app, until)
        await until(pilot, lambda: len(shown(app)) == 2)
        assert "tool_call" in shown(app)[-1] and not lines(app)


async def test_a_question_from_a_chat_out_of_sight_says_which_it_is(
    scripted: Any, app: ClawApp, work: Path, until: Until
) -> None:
    script(scripted, call("write", path="late.txt", content="x"), "Done.")
    scripted.pause_s = 0.0
    gate = threading.Event()
    prepare = scripted.tools.prepare

    def slow(*args: Any) -> Any:
        gate.wait(10)
        return prepare(*args)

    scripted.tools.prepare = slow
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, app, until)
        await send(pilot, app, "Write late.txt")
        await until(pilot, lambda: app.main._tool_stop is not None)
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.main.chat_id is None)
        gate.set()
        await asked(pilot, app, until)
        assert "in the chat “Write late.txt”" in drawing.text(app)
        await pilot.press("y")
        await answered(pilot, app, until)
        assert (work / "late.txt").read_text() == "x" and shown(app) == []
