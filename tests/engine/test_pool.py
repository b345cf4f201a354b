"""Which engines stay open. The engines are stand-ins: only that they are opened and closed matters here."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from claw_local.engine.base import ChatEngine, ModelInfo
from claw_local.engine.pool import Engines
from claw_local.errors import EngineError, ModelError


class StandIn:
    def __init__(self, name: str) -> None:
        self.closed = False
        self.info = ModelInfo(name, Path(), "hash", "llama", 1, 512)

    def close(self) -> None:
        self.closed = True


class Opened:
    """A pool of stand-ins, and all that were ever made."""

    def __init__(self, most: int = 2) -> None:
        self.made: list[StandIn] = []
        self.gate = threading.Event()
        self.gate.set()
        self.pool: Engines[str] = Engines(self._make, in_memory=lambda name: not name.startswith("served"), most=most)

    def _make(self, name: str) -> ChatEngine:
        self.gate.wait(5)
        if name == "broken":
            raise ModelError("broken")
        self.made.append(StandIn(name))
        return self.made[-1]  # type: ignore[return-value]

    def use(self, name: str) -> None:
        self.pool.lease(name).release()


def test_an_engine_is_opened_once_and_then_costs_nothing() -> None:
    opened = Opened()
    first, second = opened.pool.lease("a"), opened.pool.lease("a")
    assert first.engine is second.engine and first.load_s > 0 == second.load_s
    assert len(opened.made) == 1


def test_the_one_used_longest_ago_is_closed_before_another_is_opened() -> None:
    opened = Opened()
    for name in ("a", "b", "a", "c"):
        opened.use(name)
    assert opened.pool.opened() == ["c", "a"]
    assert [engine.closed for engine in opened.made] == [False, True, False]


def test_one_that_is_answering_is_never_closed() -> None:
    opened = Opened(most=1)
    answering = opened.pool.lease("a")
    opened.use("b")
    assert not opened.made[0].closed, "two are open while one is answering"
    answering.release()
    answering.release()
    opened.use("c")
    assert opened.pool.opened() == ["c"] and all(engine.closed for engine in opened.made[:2])


def test_engines_behind_a_server_take_no_place_from_model_files() -> None:
    opened = Opened(most=1)
    for name in ("a", *(f"served{n}" for n in range(20))):
        opened.use(name)
    assert "a" in opened.pool.opened() and len(opened.pool.opened()) == 9


def test_an_open_engine_is_had_while_another_is_opened() -> None:
    opened = Opened()
    opened.use("a")
    opened.gate.clear()
    thread = threading.Thread(target=opened.use, args=("slow",))
    thread.start()
    opened.use("a")
    opened.gate.set()
    thread.join(5)
    assert sorted(opened.pool.opened()) == ["a", "slow"]


def test_one_that_fails_to_open_leaves_the_pool_as_it_works() -> None:
    opened = Opened()
    with pytest.raises(ModelError):
        opened.use("broken")
    opened.use("a")
    assert opened.pool.opened() == ["a"]


def test_closing_closes_all_and_opens_no_more() -> None:
    opened = Opened()
    held = opened.pool.lease("a")
    opened.pool.close()
    held.release()
    assert opened.made[0].closed
    with pytest.raises(EngineError, match="closing"):
        opened.use("b")
