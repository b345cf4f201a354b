"""Order of computing: replies first, the judge after, and nobody waits for himself."""

from __future__ import annotations

import threading
import time

import pytest

from claw_local.engine import _turns
from claw_local.engine._turns import Turns


def start(target: object, *args: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_a_second_one_waits_until_the_first_leaves() -> None:
    turns, got = Turns(), threading.Event()
    turns.take("first")
    thread = start(lambda: turns.take("second") and got.set())
    assert not got.wait(0.15)
    turns.leave("first")
    assert got.wait(2)
    thread.join(2)


def test_waiting_ends_when_cancelled() -> None:
    turns, cancel = Turns(), threading.Event()
    turns.take("first")
    cancel.set()
    assert turns.take("second", cancel) is False


def test_a_thread_passes_its_own_resting_reply() -> None:
    turns = Turns()
    turns.take("half-read")
    turns.rest("half-read")
    assert turns.take("next")


def test_another_thread_passes_a_resting_reply_only_after_a_while() -> None:
    turns, got = Turns(), threading.Event()
    turns.take("half-read")
    turns.rest("half-read")
    started = time.monotonic()
    start(lambda: turns.take("next") and got.set())
    assert got.wait(5)
    assert time.monotonic() - started >= _turns.PATIENCE_S


def test_an_urgent_one_goes_before_one_that_gives_way() -> None:
    turns, order = Turns(), list[str]()
    turns.take("judge")

    def reply() -> None:
        turns.take("reply", urgent=True)
        order.append("reply")
        turns.leave("reply")

    thread = start(reply)
    time.sleep(0.15)
    assert turns.give_way("judge")
    order.append("judge")
    thread.join(2)
    assert order == ["reply", "judge"]


def test_a_stream_of_urgent_ones_keeps_nobody_out_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_turns, "ENOUGH_S", 0.3)
    turns, stop, got = Turns(), threading.Event(), threading.Event()

    def replies(name: str) -> None:
        while not stop.is_set():
            turns.take(name, urgent=True)
            time.sleep(0.01)
            turns.leave(name)

    threads = [start(replies, f"reply {n}") for n in range(3)]
    time.sleep(0.1)
    threads.append(start(lambda: turns.take("judge") and (got.set(), turns.leave("judge"))))
    assert got.wait(20)
    stop.set()
    for thread in threads:
        thread.join(5)


def test_replies_without_end_let_in_who_waited_too_long_and_do_not_hurry_him(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_turns, "ENOUGH_S", 0.2)
    hurried, got = threading.Event(), threading.Event()
    turns = Turns(hurry=hurried.set)
    assert turns.begin("replies")

    def judge() -> None:
        turns.take("judge")
        got.set()
        time.sleep(0.15)
        turns.leave("judge")

    started = time.monotonic()
    thread = start(judge)
    while not got.is_set():
        assert time.monotonic() - started < 5
        assert turns.pass_on("replies")
        time.sleep(0.01)
    assert time.monotonic() - started >= 0.2
    assert turns.pass_on("replies")
    thread.join(2)
    assert not hurried.is_set()
    assert turns.urgent


def test_a_long_batch_gives_way_to_replies_that_waited_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_turns, "ENOUGH_S", 0.1)
    turns, got = Turns(), threading.Event()
    assert turns.take("batch")
    start(lambda: turns.take("replies") and got.set())
    deadline = time.monotonic() + 0.3
    while time.monotonic() < deadline and not got.is_set():
        cancel = threading.Event()
        threading.Timer(0.3, cancel.set).start()
        turns.give_way("batch", cancel)
        time.sleep(0.01)
    assert got.is_set()
