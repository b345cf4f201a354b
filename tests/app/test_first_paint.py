"""How soon there is something to see: beside an empty Textual app, in real terminals, in the same run.

Where an empty app takes 0.4 s, as on a laptop, the bound below means 0.6 s for ours.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from textual import events

from claw_app.app import ClawApp
from tests.app.driving import Until, shown

ROOT = Path(__file__).parents[2]
EMPTY = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("first paint")
Empty().run()
"""
MOST_TIMES = 1.5
RUNS = 5


def painted_after(command: list[str], words: bytes, home: Path) -> float:
    """Seconds from the start of a program to the words on its terminal; then it is ended."""
    import fcntl
    import pty
    import signal
    import struct
    import termios

    started = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", CLAW_LOCAL_HOME=str(home))
        os.environ["PYTHONPATH"] = os.pathsep.join(str(ROOT / part) for part in (".", "app", "trainer"))
        os.execv(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen = b""
    try:
        while words not in seen:
            seen += os.read(terminal, 65536)
        return time.monotonic() - started
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_the_first_paint_is_hardly_later_than_that_of_an_empty_app(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text(EMPTY)
    empty = [sys.executable, str(tmp_path / "empty.py")]
    ours = [sys.executable, "-m", "claw_local", "chat"]
    home = tmp_path / "home"
    times: dict[str, list[float]] = {"empty": [], "ours": []}
    for _ in range(RUNS):  # In turns, so that what else the machine does falls on both; the quickest of each counts.
        times["empty"].append(painted_after(empty, b"first paint", home))
        times["ours"].append(painted_after(ours, b"Enter sends", home))
    quickest = {name: min(found) for name, found in times.items()}
    print(f"first paint: {quickest['ours']:.2f} s, an empty Textual app {quickest['empty']:.2f} s")
    assert quickest["ours"] <= MOST_TIMES * quickest["empty"]


async def test_what_is_typed_over_the_frame_is_in_the_field_afterwards(scripted: Any, until: Until) -> None:
    app = ClawApp(lambda: scripted, front=True)
    async with app.run_test(size=(80, 24)) as pilot:
        for letter in "early":
            app.post_message(events.Key(letter, letter))
        await until(pilot, lambda: len(app.screen_stack) == 2 and app.main._ready.is_set())
        await until(pilot, lambda: app.main.composer.text == "early")
        await pilot.press("enter")
        await until(pilot, lambda: shown(app) == ["early", "Hello **there**."])


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_the_frame_looks_like_the_chat_that_comes_over_it(
    scripted: Any, until: Until, size: tuple[int, int]
) -> None:
    app = ClawApp(lambda: scripted, front=True)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: len(app.screen_stack) == 2 and app.main._ready.is_set())
        frame, chat = app.screen_stack[0], app.main
        assert frame.query_one("#front-field").region == chat.composer.region
        assert frame.query_one("#front-top").region == chat.top.region
        assert frame.query_one("#front-field").border_subtitle == chat.composer.border_subtitle
