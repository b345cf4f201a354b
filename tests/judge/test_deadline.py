"""One question to a judge ends in time, and waiting for a reply is not its fault."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw_local.engine.base import Cancelled, Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.errors import JudgeError
from claw_local.judge.deadline import Deadline, within
from claw_local.judge.judge import Judge
from claw_local.settings import ModelSettings


@pytest.fixture(scope="module")
def engine(model_path: Path) -> Iterator[LlamaCppEngine]:
    with LlamaCppEngine.open(model_path, ModelSettings(threads=1, context=1024), cache_dir=None) as opened:
        yield opened


def test_it_is_set_by_time_by_hand_and_by_another_event() -> None:
    assert not Deadline(60).is_set()
    assert Deadline(0).is_set()
    by_hand = Deadline(60)
    by_hand.set()
    outer = threading.Event()
    nested = Deadline(60, outer)
    outer.set()
    assert by_hand.is_set() and nested.is_set()
    assert nested.was_stopped and not by_hand.was_stopped


def test_time_begins_anew_while_it_is_excused() -> None:
    waiting = [True]
    deadline = Deadline(0.05, excused=lambda: waiting[0])
    time.sleep(0.08)
    assert not deadline.is_set()
    waiting[0] = False
    assert not deadline.is_set(), "from the end of the waiting on, it has its whole time"
    time.sleep(0.08)
    assert deadline.is_set()


def test_who_stops_it_and_what_time_does_are_told_apart(engine: LlamaCppEngine) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(Cancelled), within(60, stopped, engine):
        raise Cancelled
    with pytest.raises(JudgeError, match=r"judge\.timeout_s"), within(60, threading.Event(), engine):
        raise Cancelled


def test_a_judge_in_this_process_that_is_too_slow_gives_no_verdict(engine: LlamaCppEngine) -> None:
    with pytest.raises(JudgeError, match=r"longer than 0\.01 s"):
        Judge(engine, timeout_s=0.01).judge("How?", "So.", "That's wrong. " * 40)


def test_a_reply_that_takes_longer_than_the_judge_may_is_waited_for(engine: LlamaCppEngine) -> None:
    judge = Judge(engine, timeout_s=4.5)
    Judge(engine).judge("", "", "hello")
    prompt = engine.render([Message("user", "Tell me a long story.")])
    made, pieces = engine.generate(prompt, Sampling(max_tokens=60, temperature=1.0, seed=1, min_p=0.05))
    next(pieces)
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(judge.judge("How?", "So.", "Perfect, thank you!").score))
    thread.start()
    began = time.monotonic()
    for _ in pieces:
        time.sleep(0.07)
    assert time.monotonic() - began > 4.6, "the reply took longer than the judge may"
    thread.join(30)
    assert found == [1] and made.response_ids
