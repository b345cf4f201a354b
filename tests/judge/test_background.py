"""A judge that fails leaves the turn waiting, tries again later, and never makes a score of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from claw_local.engine.base import ChatEngine, ModelInfo
from claw_local.errors import JudgeError
from claw_local.judge import changes
from claw_local.judge.background import MOST_FAILURES, BackgroundJudge, judge_turn, judge_waiting
from claw_local.judge.verdict import Identity, Verdict
from claw_local.paths import Paths
from claw_local.signals import turns
from claw_local.store import Store

LABELS = {"good": 1.0, "neutral": 0.0, "bad": 0.0}


class Moody:
    """A judge that fails so many times before it says "good"."""

    identity = Identity("m", "", "moody-1")

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.failures, self.calls = failures, 0
        self.error = error or JudgeError("It took too long.")
        self.ahead: list[tuple[str, str]] = []

    def judge(self, *_: Any, **__: Any) -> Verdict:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return Verdict(1, LABELS, "", "", False, version="moody-1", votes=(1, 1, 0))

    def read_ahead(self, question: str, reply: str, cancel: threading.Event | None = None) -> None:
        self.ahead.append((question, reply))

    def follows(self, *_: Any, **__: Any) -> float:
        raise AssertionError("nobody asks")


class Nobody:
    info = ModelInfo("nobody", None, "", "", 0, 0)  # type: ignore[arg-type]


NOBODY = Nobody()


@contextmanager
def an_engine() -> Iterator[ChatEngine]:
    yield NOBODY  # type: ignore[misc]


@pytest.fixture
def store(home: Paths) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


def a_turn(store: Store, number: int = 0) -> turns.Turn:
    chat = store.chats.create()
    question = store.messages.add(chat.id, "user", f"What is rain? {number}", parent_id=None, learn="yes")
    reply = store.messages.add(chat.id, "assistant", "Water.", parent_id=question, learn="yes")
    store.messages.add(chat.id, "user", "Thanks!", parent_id=reply, learn="yes")
    (found,) = turns.pair_some(store, [reply])
    return found


def eventually(what: Any, seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if what():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("error", [JudgeError("It took too long."), ValueError("a bug")])
def test_a_turn_the_judge_failed_at_is_judged_later_by_itself(store: Store, error: Exception) -> None:
    judge, turn = Moody(2, error), a_turn(store)
    background = BackgroundJudge(store, an_engine, lambda engine: judge, retry_s=0.05)
    heard = threading.Event()
    background.listen(lambda signal: heard.set())
    background.put(turn)
    assert background.wait(5), "nobody waits for what is tried again later"
    assert store.signals.of([turn.reply.id])[turn.reply.id] == [] or judge.calls == 3
    assert heard.wait(5)
    (signal,) = store.signals.of([turn.reply.id])[turn.reply.id]
    assert (signal.score, signal.votes, judge.calls) == (1, (1, 1, 0), 3)
    background.close()


def test_the_time_between_tries_doubles(store: Store) -> None:
    times: list[float] = []

    class Timed(Moody):
        def judge(self, *args: Any, **more: Any) -> Verdict:
            times.append(time.monotonic())
            return super().judge(*args, **more)

    background = BackgroundJudge(store, an_engine, lambda engine: Timed(3), retry_s=0.1)
    background.put(a_turn(store))
    assert eventually(lambda: len(times) >= 3)
    background.close()
    first, second = times[1] - times[0], times[2] - times[1]
    assert first >= 0.1 and second >= 0.2


def test_it_is_not_tried_again_once_something_else_has_judged_it(store: Store) -> None:
    judge, turn = Moody(99), a_turn(store)
    background = BackgroundJudge(store, an_engine, lambda engine: judge, retry_s=0.3)
    background.put(turn)
    assert background.wait(5)
    judge_turn(store, Moody(0), turn)
    time.sleep(0.6)
    assert judge.calls == 1
    background.close()


def test_a_turn_whose_chat_was_deleted_is_not_tried_again(store: Store) -> None:
    judge, turn = Moody(99), a_turn(store)
    background = BackgroundJudge(store, an_engine, lambda engine: judge, retry_s=0.2)
    background.put(turn)
    assert background.wait(5)
    store.chats.delete(turn.reply.chat_id)
    time.sleep(0.5)
    assert judge.calls == 1
    background.put(a_turn(store, 1))
    assert background.wait(5) and judge.calls == 2, "the thread is still there"
    background.close()


def test_what_waits_is_not_judged_once_learning_is_off(store: Store) -> None:
    judge, on = Moody(1), [True]
    background = BackgroundJudge(store, an_engine, lambda engine: judge, retry_s=0.2, may=lambda: on[0])
    background.put(a_turn(store))
    assert background.wait(5)
    on[0] = False
    time.sleep(0.5)
    assert judge.calls == 1
    background.close()


def test_closing_does_not_wait_for_a_turn_that_is_to_be_tried_again(store: Store) -> None:
    background = BackgroundJudge(store, an_engine, lambda engine: Moody(99), retry_s=60)
    background.put(a_turn(store))
    assert background.wait(5)
    started = time.monotonic()
    background.close()
    assert time.monotonic() - started < 2
    assert len(turns.waiting(store)) == 1, "it waits for the next session"


def test_the_judge_is_made_anew_once_something_has_changed(store: Store) -> None:
    made: list[Moody] = []

    def make(_: ChatEngine) -> Moody:
        made.append(Moody(0))
        return made[-1]

    background = BackgroundJudge(store, an_engine, make)
    for number in range(2):
        background.put(a_turn(store, number))
    assert background.wait(5) and len(made) == 1
    changes.note_change(store)
    background.put(a_turn(store, 3))
    assert background.wait(5) and len(made) == 2
    background.close()


def test_a_learning_run_goes_on_without_a_judge_that_fails(store: Store) -> None:
    waiting = [a_turn(store, number) for number in range(6)]
    moody = Moody(1)
    assert judge_waiting(store, moody, waiting) == "It took too long."
    assert len(turns.waiting(store)) == 1 and moody.calls == 6
    for turn in turns.waiting(store):
        judge_turn(store, Moody(0), turn)
    gone = Moody(99)
    more = [a_turn(store, number) for number in range(6)]
    numbers: list[int] = []
    judge_waiting(store, gone, more, numbers.append)
    assert gone.calls == MOST_FAILURES and numbers == [1, 2, 3], "it is not asked a thousand times"
    assert len(turns.waiting(store)) == 6


def test_a_reply_is_read_ahead_only_when_nothing_is_left_to_judge(store: Store) -> None:
    busy, go = threading.Event(), threading.Event()

    class Slow(Moody):
        def judge(self, *args: Any, **more: Any) -> Verdict:
            busy.set()
            assert go.wait(5)
            return super().judge(*args, **more)

    judge = Slow(0)
    background = BackgroundJudge(store, an_engine, lambda engine: judge)
    background.put(a_turn(store))
    assert busy.wait(5)
    background.read_ahead("How old is rain?", "Old.")
    background.put(a_turn(store, 1))
    go.set()
    assert background.wait(5) and judge.calls == 2
    assert judge.ahead == [], "the turn behind it came first"
    background.read_ahead("How wet is rain?", "Wet.")
    assert background.wait(0), "nobody waits for it"
    assert eventually(lambda: judge.ahead == [("How wet is rain?", "Wet.")])
    background.close()
