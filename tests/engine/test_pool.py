"""Which engines stay open. The engines are stand-ins: only that they are opened and closed matters here."""

from __future__ import annotations

import sys
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


class OnGpu(StandIn):
    """An engine that holds a GPU's memory, and knows a chat."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.knows = ""

    @property
    def on_gpu(self) -> bool:
        return not self.closed

    def remember(self) -> str:
        assert not self.closed
        return self.knows

    def recall(self, remembered: str) -> None:
        self.knows = remembered


def test_what_holds_a_gpu_s_memory_is_let_go_of_and_comes_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opened(most=3)
    opened.use("on the processor")
    monkeypatch.setattr(sys.modules[__name__], "StandIn", OnGpu)
    busy = opened.pool.lease("busy")
    opened.use("unused")
    here, unused = opened.made[1:]
    unused.knows = "a chat"  # type: ignore[attr-defined]
    assert opened.pool.on_gpu() and not opened.pool.let_go(), "one is answering"
    assert (here.closed, unused.closed, opened.pool.away()) == (False, True, ["unused"])
    assert opened.pool.opened() == ["busy", "on the processor"]

    again = opened.pool.lease("unused").engine
    assert again.knows == "a chat" and opened.pool.away() == []  # type: ignore[attr-defined]
    busy.release()
    assert not opened.pool.let_go(), "the other one is answering now"
    opened.pool.close()
    assert opened.pool.away() == []


def test_an_engine_asked_for_while_it_is_let_go_of_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "StandIn", OnGpu)
    opened = Opened()
    opened.use("a")
    closing, may_close = threading.Event(), threading.Event()
    first = opened.made[0]

    def close() -> None:
        closing.set()
        assert may_close.wait(5)
        first.closed = True

    first.close = close  # type: ignore[method-assign]
    going = threading.Thread(target=opened.pool.let_go)
    going.start()
    assert closing.wait(5)
    asking = threading.Thread(target=opened.use, args=["a"])
    asking.start()
    asking.join(0.1)
    assert asking.is_alive() and len(opened.made) == 1, "two models might not fit beside each other"
    may_close.set()
    going.join(5)
    asking.join(5)
    assert len(opened.made) == 2 and opened.pool.opened() == ["a"]
