"""A real server on a free port of this machine, with the embedded model, for whole modules of tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from claw_local.assistant import Assistant
from claw_local.server.guard import Door
from claw_local.server.running import listen, make_server
from claw_local.settings import Settings


@dataclass
class Served:
    """A server under test. `url`: without a path."""

    url: str
    assistant: Assistant


@contextmanager
def serving(assistant: Assistant, door: Door | None = None) -> Iterator[Served]:
    listening = listen("127.0.0.1", 0)
    ready = threading.Event()
    server = make_server(assistant, door or Door(), ready.set)
    thread = threading.Thread(target=lambda: server.run([listening]), daemon=True)
    thread.start()
    assert ready.wait(20), "the server did not begin"
    try:
        yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", assistant)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive(), "the server did not stop"


def small() -> Settings:
    """Short answers, drawn without chance."""
    settings = Settings()
    settings.model.context = 1024
    settings.model.threads = 1
    settings.sampling.max_tokens = 16
    settings.sampling.temperature = 0.0
    return settings


@pytest.fixture(scope="module")
def shared_assistant(tmp_path_factory: pytest.TempPathFactory, model_path: Path) -> Iterator[Assistant]:
    with Assistant.open(tmp_path_factory.mktemp("served"), model=model_path, settings=small()) as opened:
        opened.load()
        yield opened


@pytest.fixture(scope="module")
def served(shared_assistant: Assistant) -> Iterator[Served]:
    """A server whose callers do not teach."""
    with serving(shared_assistant) as found:
        yield found


@pytest.fixture
def serve(shared_assistant: Assistant) -> Iterator[Callable[[Door], Served]]:
    """Serve the same assistant behind another door."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda door: stack.enter_context(serving(shared_assistant, door))
