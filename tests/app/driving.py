"""What the app's tests do again and again: say something, wait for the reply, look at what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual import events
from textual.keys import _character_to_key

from claw_app.app import ClawApp
from claw_app.widgets.bubbles import Bubble, Question

Until = Callable[..., Any]
"""The fixture `until`."""


async def send(pilot: Any, app: ClawApp, words: str) -> None:
    """Put a message into the field and press Enter."""
    app.main.composer.text = words
    await pilot.press("enter")


def in_one_go(app: ClawApp, text: str, *keys: str) -> None:
    """Letters and keys as a fast terminal sends them: all before the first is read."""
    for letter in text:
        app.post_message(events.Key(_character_to_key(letter), letter))
    for key in keys:
        app.post_message(events.Key(key, {"enter": "\r", "tab": "\t"}.get(key)))


async def say(pilot: Any, app: ClawApp, words: str, until: Until) -> Bubble:
    """The same, and wait until the reply is there."""
    before = set(app.main.transcript.replies())
    await send(pilot, app, words)
    await until(pilot, lambda: not app.main.sending and set(app.main.transcript.replies()) - before)
    return app.main.transcript.replies()[-1]


def shown(app: ClawApp) -> list[str]:
    """The messages on the screen."""
    return [
        widget.raw for widget in app.main.query("Question, Bubble").results() if isinstance(widget, Question | Bubble)
    ]


def said(app: ClawApp) -> str:
    """The notifications, each with its title."""
    return "\n".join(f"{note.title}: {note.message}" for note in app._notifications)


def foot(bubble: Bubble) -> str:
    """The line below a reply."""
    return str(bubble.query_one(".foot").render())
