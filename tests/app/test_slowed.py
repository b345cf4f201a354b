"""A person who is quicker than the disk loses nothing: keys at random, a store that is slow at random.

The two seeds are those that found what this test was written to find; `--slowed` with another number tries others.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from typing import Any

import pytest

from claw_app import background
from claw_app.app import ClawApp
from tests.app.driving import Until, in_one_go, shown
from tests.app.slowed import slowed

MOVES = (
    ("type", 8),
    ("send", 6),
    ("ctrl+n", 3),
    ("to another chat", 4),
    ("elsewhere", 2),
    ("ctrl+g", 1),
    ("ctrl+r", 1),
    ("escape", 1),
    ("rename", 1),
    ("search", 1),
    ("pause", 6),
)


def words(text: str) -> list[str]:
    """The words that were typed for this test, each of which is there once."""
    return re.findall(r"word\d+", text)


def kept(scripted: Any) -> Counter[str]:
    """Each word, and how often the store has it: as a message, or as what was typed and not sent."""
    found: Counter[str] = Counter()
    store = scripted.store
    for chat in store.chats.list():
        for message in store.trees.messages(chat.id):
            if message.role == "user":
                found.update(words(message.content))
        found.update(words(scripted.history.draft(chat.id)))
    found.update(words(scripted.history.draft(None)))
    return found


async def one_move(app: ClawApp, scripted: Any, chance: random.Random, number: int, typed: list[str]) -> None:
    move = chance.choices([name for name, _ in MOVES], [weight for _, weight in MOVES])[0]
    if move == "type":
        typed.append(f"word{number}")
        in_one_go(app, f"word{number} ")
    elif move == "send":
        in_one_go(app, "", "enter")
    elif move == "to another chat":
        in_one_go(app, "", "ctrl+o", *["down"] * chance.randint(0, 2), "enter")
    elif move == "elsewhere":
        chats = scripted.chats()
        chat = chance.choice([None, *[one.id for one in chats]])
        typed.append(f"word{number}")
        await asyncio.to_thread(scripted.ask, f"word{number}", chat=chat)
    elif move == "rename":
        in_one_go(app, "/rename Rain", "enter") if chance.random() < 0.5 and not app.main.composer.text else None
        in_one_go(app, "", "f2")
        in_one_go(app, "Snow", "enter")
    elif move == "search":
        in_one_go(app, "", "f7")
        in_one_go(app, "snow", "escape")
    elif move == "pause":
        await asyncio.sleep(chance.uniform(0, 0.6))
    else:
        in_one_go(app, "", move)


@pytest.mark.parametrize("seed", [1, 5])
async def test_whatever_is_typed_is_there_once_in_the_end(
    app: ClawApp, scripted: Any, until: Until, request: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    seed += 1000 * (request.config.getoption("--slowed") or 0)
    monkeypatch.setattr(background, "_bind", slowed(seed))
    chance, typed = random.Random(seed), list[str]()
    scripted.engine.pause_s = 0.02
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.main.status.model == "Scripted")
        for number in range(30):
            await one_move(app, scripted, chance, number, typed)
        await until(pilot, lambda: not app.gate.shut and not app.main.sending and app.screen is app.main, timeout_s=60)

        def all_there() -> bool:
            found = kept(scripted)
            field = Counter(words(app.main.composer.text))
            return all(found[word] == 1 for word in typed) and not field - found

        try:
            await until(pilot, all_there, timeout_s=20)
        except AssertionError:
            pytest.fail(f"typed {typed}, kept {kept(scripted)}, in the field {app.main.composer.text!r}")

        def all_shown() -> bool:
            stored = scripted.messages(app.main.chat_id) if app.main.chat_id is not None else []
            return shown(app) == [message.content for message in stored]

        try:
            await until(pilot, all_shown)
        except AssertionError:
            stored = [message.content for message in scripted.messages(app.main.chat_id)]
            pytest.fail(f"stored {stored}, shown {shown(app)}")
