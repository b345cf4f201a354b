"""Fixtures for the app's tests.

`scripted` is a real Assistant over a real database, in which only the model is a script: for what the screen does while
a reply comes, waiting for a model would teach nothing. The tests in test_real_model.py use the embedded model.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot, WaitForScreenTimeout

from claw_app import background
from claw_app.app import ClawApp
from claw_local.assistant import Assistant
from claw_local.engine.base import Generation, Message, ModelInfo, Prompt, Sampling
from claw_local.settings import Settings
from tests.app.slowed import slowed


class ScriptedEngine:
    """Says `script`, piece by piece, `pause_s` apart; under an adapter `adapted`, if there is one."""

    def __init__(self, script: Sequence[str], pause_s: float) -> None:
        self.script, self.pause_s = list(script), pause_s
        self.info = ModelInfo("Scripted", Path("scripted.gguf"), "0" * 64, "llama", 1, 4096)
        self.asked: list[str] = []
        self.adapted: Sequence[str] = ()
        self._under_adapter = False
        self.takes_tools, self.chat_template = False, ""

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return [1] * len(text.split())

    def render(self, messages: Sequence[Message], *, reserve: int = 0) -> Prompt:
        self.asked.append(messages[-1].content)
        return Prompt((1, 2, 3))

    def set_adapters(self, adapters: Sequence[object]) -> None:
        self._under_adapter = bool(adapters)

    def close(self) -> None:
        pass

    def generate(
        self, prompt: Prompt, sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> tuple[Generation, Iterator[str]]:
        generation = Generation(prompt.token_ids, sampling)

        script = self.adapted if self._under_adapter and self.adapted else self.script

        def pieces() -> Iterator[str]:
            for piece in script:
                if cancel is not None and cancel.is_set():
                    generation.finish_reason = "cancelled"
                    return
                generation.text += piece
                generation.response_ids.append(1)
                generation.logprobs.append(-1.0)
                yield piece
                time.sleep(self.pause_s)

        return generation, pieces()


class ScriptedAssistant(Assistant):
    """An Assistant whose model is a script; `load_error` and `loading` stand for a model that fails or is slow."""

    script: Sequence[str] = ("Hello ", "**there**", ".")
    pause_s = 0.0
    load_error: Exception | None = None

    def prepare(self) -> None:
        self.loading = threading.Event()
        self.loading.set()
        self.engine = ScriptedEngine(self.script, self.pause_s)

    def _open_engine(self, source: object) -> ScriptedEngine:  # type: ignore[override]
        self.loading.wait(20)
        if self.load_error is not None:
            raise self.load_error
        return self.engine

    @property
    def model_sha256(self) -> str:
        return self.engine.info.sha256


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[ScriptedAssistant]:
    from claw_local.paths import locate

    assistant = ScriptedAssistant(locate(tmp_path / "home"), Settings(), None)
    assistant.prepare()
    yield assistant
    assistant.loading.set()
    assistant.close()


@pytest.fixture
def app(scripted: ScriptedAssistant) -> ClawApp:
    return ClawApp(lambda: scripted)


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the background that goes wrong ends the app, and so the test."""
    monkeypatch.setattr(ClawApp, "survives", False)


@pytest.fixture(autouse=True)
def _slowed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = request.config.getoption("--slowed")
    if seed is not None:
        monkeypatch.setattr(background, "_bind", slowed(seed))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pilot.press waits for what it did, also where a letter is kept for a moment or waits for a page."""
    press = Pilot.press

    async def pressed(pilot: Pilot[None], *keys: str) -> None:
        await press(pilot, *keys)
        if kept(pilot):
            while kept(pilot):
                await pilot.pause(0.02)
            await pilot.pause()

    def kept(pilot: Pilot[None]) -> bool:
        gate = getattr(pilot.app, "gate", None)
        return getattr(pilot.app.screen, "_held", None) is not None or (gate is not None and gate.shut)

    monkeypatch.setattr(Pilot, "press", pressed)
    monkeypatch.setattr(Pilot, "_wait_for_screen", processed)


async def processed(pilot: Pilot[None], timeout: float = 30.0) -> bool:
    """What Pilot waits for between two steps: every widget has read what was sent to it.

    Pilot's own waits 30 s, and fails, for a widget that is taken away meanwhile: it will never read anything.
    """
    app = pilot.app
    if not app.is_running or not app._screen_stack:
        return False
    waited_for = [app, *app.screen.walk_children(with_self=True)]
    left: dict[Any, None] = {}
    all_have = asyncio.Event()

    def has_read(one: Any) -> None:
        left.pop(one, None)
        if not left:
            all_have.set()

    for one in waited_for:
        left[one] = None
        if not one.call_later(has_read, one):
            del left[one]
    end = time.monotonic() + timeout
    while not all(one._closing or one._closed or one._pruning for one in left):
        if app._exception_event.is_set():
            return False
        if time.monotonic() > end:
            raise WaitForScreenTimeout(f"They have not read what was sent to them: {list(left)}")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(all_have.wait(), 0.05)
    return True


@pytest.fixture
def until() -> Callable[..., object]:
    """Wait until something is true, or fail saying what was not; what has come onto the screen is there whole then."""

    async def wait(pilot: Pilot[None], true: Callable[[], object], timeout_s: float = 10.0) -> None:
        end = time.monotonic() + timeout_s
        while not true():
            assert time.monotonic() < end, f"not true after {timeout_s} s: {true}"
            await pilot.pause(0.02)
        while not drawn(pilot.app) and time.monotonic() < end:
            await pilot.pause(0.02)

    def drawn(app: Any) -> bool:
        if not (app.is_running and app._screen_stack):
            return True
        return all(one.is_mounted for one in app.screen.walk_children(with_self=True))

    return wait
