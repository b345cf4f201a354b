"""Every screen, dark and light, as it was when somebody last looked at it and found it good.

Nothing in it depends on this machine: the model is a script, the times and places are made up. After a change that is
meant, write the snapshots anew with CLAW_LOCAL_SNAPSHOTS=write, and look at the difference before you keep it.
"""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.screen import ModalScreen, Screen

from claw_app import screens
from claw_app.app import ClawApp
from claw_app.screens.ask import Confirm
from claw_app.screens.front import Front
from claw_app.themes import DARK, LIGHT
from claw_local.paths import Paths
from tests.app import drawing
from tests.app.driving import Until
from tests.app.test_first_start import FoundHere
from tests.app.test_learning_view import GATE
from tests.app.test_tools import call, script

KEPT = Path(__file__).parent / "snapshots"
WRITE = os.environ.get("CLAW_LOCAL_SNAPSHOTS") == "write"
SHOWS = "--- screen "
SMALL, LARGE = (80, 24), (200, 60)
REPLY = """Put it into **boiling** water:

1. six minutes for a soft yolk,
2. ten for a hard one.

```python
minutes = 6 if soft else 10
```

Then hold it under cold water."""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="times are shown in the machine's time zone")


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The times that are shown are the same everywhere."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def lived(scripted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An assistant that was used: chats, marks, hints, runs and an adapter, all long ago."""
    monkeypatch.setattr(type(scripted), "models", property(lambda _: FoundHere()))
    scripted.paths = Paths(data=Path("/home/me/claw-local"), config=Path("/home/me/claw-local"))
    monkeypatch.setattr("claw_app.screens.export.documents", lambda: Path("/home/me"))
    scripted.learn.on()
    store = scripted.store
    (tmp_path / "adapter.gguf").write_bytes(b"GGUF")
    adapter = store.adapters.add(
        parent_id=0,
        model_sha256="0" * 64,
        architecture="llama",
        gguf_path=str(tmp_path / "adapter.gguf"),
        lineage=[1, 2, 3],
    )
    scripted.engine.script = [REPLY]
    first = scripted.ask("How do I boil an egg?")
    store.messages.describe(first.message_id, adapter_id=adapter.id)
    scripted.feedback(first.message_id, "bad", hint="At most two sentences, no lists")
    scripted.engine.script = ["In boiling water, six to ten minutes."]
    again = scripted.regenerate(first.message_id).answer
    scripted.engine.script = ["You are welcome. 🥚"]
    scripted.ask("Danke! שלום 👩‍🍳", chat=first.chat_id)
    scripted.feedback(again.message_id, "good")
    for title in (
        "Where is my umbrella?",
        "Titles in 日本語 are wide",
        "A title that is much longer than the list is wide",
    ):
        chat = scripted.ask(title)
        store.chats.update(chat.chat_id, title=title)
    scripted.history.archive(chat.chat_id)
    scripted.hints.off(scripted.hints.add("Always rhyme").id)
    result = {"adapter": adapter.id, "accepted": True, "reason": "Taken: it keeps your wishes.", "samples": 12}
    store.runs.finish(
        store.runs.begin(), "done", result={**result, "steps": 8, "seconds": 61.0, "gate": GATE}, adapter_id=adapter.id
    )
    store.runs.finish(store.runs.begin(), "failed", result={}, detail="Memory ran out.")
    scripted.wait_judged()
    with store.database.write() as db:
        for table, column in (
            ("chats", "updated_at"),
            ("chats", "created_at"),
            ("messages", "created_at"),
            ("adapters", "created_at"),
            ("runs", "started_at"),
            ("runs", "finished_at"),
        ):
            db.execute(f"update {table} set {column} = '2020-03-' || printf('%02d', 10 + id) || 'T12:00:00+00:00'")
        db.execute(
            """update messages set timings = '{"first_token_s": 0.4, "total_s": 2.5}' where role = 'assistant'"""
        )
    scripted.first = first
    return scripted


class Looks:
    """Takes pictures of an app, and says at the end which are not as they were."""

    def __init__(self, app: ClawApp, pilot: Any, until: Until) -> None:
        self.app, self.pilot, self._until = app, pilot, until
        self.wrong: list[str] = []

    async def until(self, true: Callable[[], object]) -> None:
        await self._until(self.pilot, true)

    async def take(self, name: str) -> None:
        """The screen as it is now, dark and light."""
        width, height = self.app.size
        parts = {}
        for theme in (DARK.name, LIGHT.name):
            self.app.theme = theme
            await self._still()
            parts[theme] = drawing.styles(self.app)
            parts.setdefault("", drawing.text(self.app))
            assert parts[""] == drawing.text(self.app), "the colours change no word"
        self.app.theme = DARK.name
        head = f"{SHOWS}{type(self.app.screen).__name__}\n\n{parts['']}"
        picture = f"{head}\n\n--- dark\n{parts[DARK.name]}\n\n--- light\n{parts[LIGHT.name]}\n"
        file = KEPT / f"{name}-{width}x{height}.txt"
        if WRITE:
            file.write_text(picture, "utf-8")
        kept = file.read_text("utf-8") if file.exists() else ""
        if picture != kept:
            lines = difflib.unified_diff(kept.splitlines(), picture.splitlines(), file.name, "now", lineterm="", n=1)
            self.wrong.append("\n".join(list(lines)[:60]))

    async def _still(self) -> None:
        """Nothing moves any more: two pictures are the same, and there is something on them, also behind a dialog."""
        before = ""
        for _ in range(40):
            drawing.quiet(self.app)
            await self.pilot.pause(0.05)
            text = drawing.text(self.app)
            now = text + drawing.styles(self.app)
            is_whole = text.partition("\n")[0] if isinstance(self.app.screen, ModalScreen) else text
            if now == before and is_whole.strip():
                return
            before = now
        raise AssertionError("the screen never comes to rest")


@pytest.fixture
def look(until: Until) -> Any:
    @asynccontextmanager
    async def looking(assistant: Any, size: tuple[int, int], chat_id: int | None = None) -> AsyncIterator[Looks]:
        app = ClawApp(lambda: assistant, chat_id=chat_id)
        async with app.run_test(size=size, notifications=True) as pilot:
            looks = Looks(app, pilot, until)
            await looks.until(lambda: app.main._ready.is_set() and app.main.status.model == "Scripted")
            await looks.until(lambda: app.main.status.state)
            app.main.composer.focus()
            yield looks
        assert not looks.wrong, "\n\n".join(looks.wrong)

    return looking


async def test_the_first_start(look: Any, scripted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(scripted), "models", property(lambda _: FoundHere()))
    scripted.paths = Paths(data=Path("/home/me/claw-local"), config=Path("/home/me/claw-local"))
    async with look(scripted, SMALL) as looks:
        await looks.until(lambda: any(models.display for models in looks.app.main.query("#welcome-models")))
        await looks.take("first-start")


async def test_the_chat_and_what_opens_over_it(look: Any, lived: Any) -> None:
    async with look(lived, SMALL, lived.first.chat_id) as looks:
        app, press = looks.app, looks.pilot.press
        await looks.until(lambda: len(app.main.transcript.replies()) == 2)
        await looks.take("chat")
        app.say("The reply is copied. 1 copies the code alone.", timeout=60)
        await looks.take("chat-notified")
        app.clear_notifications()
        await press("tab", "up", "up")
        await looks.take("chat-reply-in-focus")
        await press("left")
        await looks.until(lambda: "1/2" in drawing.text(app))
        await press("w")
        await looks.until(lambda: "Why this answer" in drawing.text(app))
        await looks.take("why")
        await press("escape", "f4")
        await looks.until(lambda: "What should this reply" in drawing.text(app))
        await looks.take("hint")
        await press("escape", "e")
        await looks.until(lambda: "The reply as you want it" in drawing.text(app))
        await looks.take("correct")
        await press("escape", "escape", "f1")
        await looks.until(lambda: "Type to search" in drawing.text(app))
        await looks.take("help")
        await press("escape", "f6")
        await looks.until(lambda: "temperature" in drawing.text(app).lower())
        await looks.take("chat-settings")
        await press("escape", "f7", *"egg")
        await looks.until(lambda: "How do I boil" in drawing.text(app))
        await looks.take("search")
        await press("escape", "slash")
        await looks.until(lambda: "/rename" in drawing.text(app) or "/new" in drawing.text(app))
        await looks.take("commands")
        await press(*"learn ")
        await looks.until(lambda: "what you say about a reply teaches" in drawing.text(app))
        await looks.take("command-words")
        app.main.composer.text = ""
        await press(*"/forget", "enter")
        await looks.until(lambda: "cannot be undone" in drawing.text(app))
        await looks.take("forget")
        await press("escape", "ctrl+p")
        await looks.until(lambda: "Archive chat" in drawing.text(app))
        await looks.take("palette")
        await press("escape", "ctrl+o")
        await looks.until(lambda: "Where is my umbrella" in drawing.text(app))
        await looks.take("chats")
        await press("x")
        await looks.until(lambda: "Markdown" in drawing.text(app))
        await looks.take("export")
        await press("escape", "ctrl+o")
        app.push_screen(Confirm("A training run is on. If you quit now, it stops.", "Quit", "Stay"))
        await looks.take("confirm")
        app.main.stop_learning, app.main.leave_learning = threading.Event(), threading.Event()
        await press("escape", "f5")
        await looks.until(lambda: "Throw away" in drawing.text(app))
        await looks.take("about-run")
        app.main.stop_learning = None
        await press("escape", "f12")
        await looks.until(lambda: "INCOGNITO" in drawing.text(app))
        await looks.take("incognito")


async def test_what_it_learned(look: Any, lived: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.SystemRandom.shuffle", lambda *_: None)
    lived.engine.adapted = ["Once, it was."]
    async with look(lived, SMALL, lived.first.chat_id) as looks:
        app, press = looks.app, looks.pilot.press
        await press("ctrl+t")
        await looks.until(lambda: "waiting" in drawing.text(app) and "Score over time" in drawing.text(app))
        await looks.take("learned-score")
        for key, name in (("2", "hints"), ("3", "runs"), ("4", "adapters")):
            await press(key)
            await looks.take(f"learned-{name}")
        await press("enter")
        await looks.until(lambda: "Taken" in drawing.text(app))
        await looks.take("report")
        await press("escape", "escape", "tab", "c")
        await looks.until(lambda: "Compare two adapters" in drawing.text(app))
        await looks.take("compare")
        await press("enter")
        await looks.until(lambda: "Which is better?" in drawing.text(app))
        await looks.take("compare-answered")


async def test_a_large_terminal(look: Any, lived: Any) -> None:
    async with look(lived, LARGE, lived.first.chat_id) as looks:
        app = looks.app
        await looks.until(lambda: len(app.main.transcript.replies()) == 2)
        await looks.take("chat")
        await looks.pilot.press("ctrl+t")
        await looks.until(lambda: "Two" not in drawing.text(app) and "Adapters" in drawing.text(app))
        await looks.take("learned")
        await looks.pilot.press("escape", "f6")
        await looks.until(lambda: "Repeat penalty" in drawing.text(app))
        await looks.take("chat-settings")


async def test_a_run_a_deleted_chat_and_a_file_to_attach(
    look: Any, lived: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    for name in ("notes.md", "numbers.csv"):
        (tmp_path / "here" / name).write_text("text", "utf-8")
    monkeypatch.chdir(tmp_path / "here")
    async with look(lived, SMALL, lived.first.chat_id) as looks:
        app = looks.app
        run = lived.store.runs.begin()
        lived.store.runs.progress(run, "training", 0.25, "step 2 of 8")
        await looks.until(lambda: "step 2 of 8" in drawing.text(app) and "25%" in drawing.text(app))
        await looks.take("learning-run")
        lived.store.runs.finish(run, "stopped", result={}, detail="You stopped it.")
        await looks.until(lambda: "25%" not in drawing.text(app))
        await looks.pilot.press("f8")
        await looks.until(lambda: "Ctrl+Z undoes" in drawing.text(app))
        await looks.take("deleted")
        await looks.pilot.press(*"look at @n")
        await looks.until(lambda: "numbers.csv" in drawing.text(app))
        await looks.take("files")


async def test_the_frame_that_is_painted_first(scripted: Any, until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Front, "_go_on", lambda _: None)
    app = ClawApp(lambda: scripted, front=True)
    async with app.run_test(size=SMALL) as pilot:
        looks = Looks(app, pilot, until)
        await looks.take("front")
    assert not looks.wrong, looks.wrong[0]


async def test_a_very_small_terminal(look: Any, lived: Any) -> None:
    async with look(lived, (20, 5), lived.first.chat_id) as looks:
        await looks.until(looks.app.main.transcript.replies)
        await looks.pilot.press(*"short")
        await looks.take("chat")
        assert "short" in drawing.text(looks.app) and "welcome" in drawing.text(looks.app)


async def test_tools(look: Any, scripted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claw_app.screens.approve.SETTLE_S", 0.0)
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "shopping.md").write_text("# Saturday\n\n- milk\n- eggs\n- tea\n", "utf-8")
    chat_id = scripted.tools.give(scripted.new_chat(title="Shopping").id, folder).id
    new = "# Saturday\n\n- milk\n- bread\n- tea\n"
    script(
        scripted,
        call("read", path="shopping.md"),
        "I change one line. " + call("write", path="shopping.md", content=new),
        "It says *bread* now.",
    )
    async with look(scripted, SMALL, chat_id) as looks:
        app, press = looks.app, looks.pilot.press
        app.main.composer.text = "Bread in place of eggs, please."
        await press("enter")
        await looks.until(lambda: "May it write" in drawing.text(app))
        await looks.take("approve")
        await press("y")
        await looks.until(lambda: not app.main.sending)
        await looks.take("tools")
        await press("tab", "up", "up", "up", "enter")
        await looks.take("tool-open")


def test_every_screen_has_its_picture() -> None:
    for module in pkgutil.iter_modules(screens.__path__, f"{screens.__name__}."):
        importlib.import_module(module.name)

    def kinds(kind: type) -> Iterator[type]:
        for one in kind.__subclasses__():
            yield one
            yield from kinds(one)

    own = {one for one in kinds(Screen) if one.__module__.startswith(screens.__name__)}
    parts = {base for one in own for base in one.__mro__[1:]}  # Of what is put together into another.
    heads = [file.read_text("utf-8").partition("\n")[0] for file in KEPT.glob("*.txt")]
    assert {one.__name__ for one in own - parts} | {"CommandPalette"} == {head.removeprefix(SHOWS) for head in heads}
