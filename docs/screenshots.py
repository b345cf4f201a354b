"""Takes the README's pictures: the real app with the embedded model, driven through a short chat.

    python docs/screenshots.py [--to FOLDER]

Everything happens in a folder that is thrown away; your own chats are not touched. What the model says is what it said.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.widgets import Footer

from claw_app.app import ClawApp
from claw_app.screens.learning_view import LearningView
from claw_app.widgets.learned import RowList
from claw_local.assistant import Assistant
from claw_local.settings import Settings

FOLDER = Path(__file__).parent
SIZE = (100, 30)
LARGER = (120, 34)
LONGEST_WAIT_S = 240.0
SAID = (
    "What is rain?",
    "Too long. Answer in one sentence, please.",
    "And what is snow?",
)
OTHERS = ("Plan a weekend in Oslo", "Why is the sky blue?", "A birthday card for Aino")
MARKS = ("bad", "bad", "good", "bad", "bad", "good", "good", "bad", "good", "good", "good", "good")
"""What was thought of the replies in these other chats."""


def settings() -> Settings:
    """The same answers each time."""
    chosen = Settings()
    chosen.sampling.temperature = 0.0
    chosen.sampling.max_tokens = 160
    return chosen


async def until(pilot: Any, true: Callable[[], object]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + LONGEST_WAIT_S
    while not true():
        if time.monotonic() > end:
            raise SystemExit(f"This did not come about within {LONGEST_WAIT_S:.0f} s: {true}")
        await pilot.pause(0.05)


async def say(pilot: Any, app: ClawApp, assistant: Assistant, words: str) -> None:
    """Type, send, and wait for the reply, its title, and the judge's word on the reply before."""
    before = set(app.main.transcript.replies())
    app.main.composer.text = words
    await pilot.press("enter")
    await until(pilot, lambda: not app.main.sending and set(app.main.transcript.replies()) - before)
    await asyncio.to_thread(assistant.wait_judged, LONGEST_WAIT_S)
    await pilot.pause(1.0)


async def keep(pilot: Any, app: ClawApp, file: Path) -> None:
    """Write the screen as a picture, its keys included, once all of it is drawn. Fonts are the viewer's own: a README
    loads nothing from elsewhere."""
    await pilot.pause(1.0)
    # The footer is composed anew when the keys change, and for a moment has no height.
    await until(pilot, lambda: all(footer.region.height for footer in app.screen.query(Footer)))
    await until(pilot, lambda: app.export_screenshot().count("<text") > app.size.height)
    picture = app.export_screenshot(title="claw-local")
    picture = re.sub(r"\s*@font-face \{[^}]*\}", "", picture)
    file.write_text(picture, "utf-8")
    print(f"{file}: {len(picture.encode()) / 1000:.0f} kB")


async def take(folder: Path) -> None:
    """A chat with a correction; why an answer came out as it did, in light colours; what was learned."""
    with (
        tempfile.TemporaryDirectory(prefix="claw-local-") as home,
        Assistant.open(home, settings=settings()) as assistant,
    ):
        assistant.learn.on()
        chats = [assistant.new_chat(title=title).id for title in OTHERS]
        for number, mark in enumerate(MARKS):
            place = number % len(OTHERS)
            answer = assistant.ask(OTHERS[place], chat=chats[place], sampling={"max_tokens": 4})
            assistant.feedback(answer.message_id, mark)
        assistant.wait_judged(LONGEST_WAIT_S)
        app = ClawApp(lambda: assistant)
        async with app.run_test(size=SIZE) as pilot:
            await until(pilot, lambda: "SmolLM2" in app.main.status.model)
            for words in SAID:
                await say(pilot, app, assistant, words)
            await pilot.press("ctrl+g", "tab", "up", "up")
            await keep(pilot, app, folder / "chat.svg")
            await pilot.press("down", "down", "w")
            app.action_toggle_theme()
            await keep(pilot, app, folder / "why-light.svg")
            app.action_toggle_theme()
            await pilot.press("escape", "ctrl+t")
            await until(pilot, lambda: isinstance(app.screen, LearningView) and app.screen.query(RowList))
            await pilot.resize_terminal(*LARGER)
            await keep(pilot, app, folder / "learned.svg")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":", maxsplit=1)[0])
    parser.add_argument("--to", type=Path, default=FOLDER, metavar="FOLDER", help="where to (default: docs)")
    asyncio.run(take(parser.parse_args().to))
