"""Coming back to a learning run: how long the first token takes, over the same where nothing is learned.

    python -m benchmarks returning [--rounds 6] [--after 0 1] [--threads N] [--json]

A few answers are corrected and a run is started, as it is when nobody is there. While it practises or trains, the
person comes back: the run is told to leave, as the app does at the first key, and a question is asked `--after` so many
seconds. `ratio`: seconds to its first token, over those of a question as long in the same chat with no run, in rounds
that take turns. `left_s`: seconds until the run's process was gone, with its memory.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable

from claw_local.assistant import Assistant
from claw_local.engine.base import Sampling
from claw_local.idle.job import Job
from claw_local.settings import ModelSettings, Settings

from .first_light import CORRECTIONS, TAUGHT
from .sidebyside import medians, options_of, own_home, ratio, say

SAMPLING = Sampling(max_tokens=2, seed=1)
AT_WORK = ("practising", "training")
MOST_S = 180.0
"""Longest wait for a run to be at work."""


def main() -> None:
    def more(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--after", type=float, nargs="+", default=[0.0, 1.0], help="seconds from the first key")

    options = options_of("returning", __doc__, rounds=6, more=more)
    settings = Settings(model=ModelSettings(threads=options.threads))
    with own_home() as home, Assistant.open(home, model=options.model, settings=settings) as assistant:
        say(measure(assistant, options.rounds, options.after), options)


def measure(assistant: Assistant, rounds: int, after: list[float]) -> dict[str, object]:
    assistant.learn.on()
    for number, question in enumerate(TAUGHT[:4]):
        answer = assistant.ask(question, sampling=assistant.default_sampling(max_tokens=60, seed=number))
        assistant.feedback(answer.message_id, "bad", hint=CORRECTIONS[number % len(CORRECTIONS)])
    chat = assistant.ask("Hello.", sampling=SAMPLING, learn=False).chat_id
    asked = iter(range(10_000))

    def first_token() -> float:
        started = time.perf_counter()
        reply = assistant.stream(
            f"Tell me about the number {next(asked) + 1000}.", chat=chat, sampling=SAMPLING, learn=False
        )
        seconds = 0.0
        for _ in reply:
            seconds = seconds or time.perf_counter() - started
        return seconds or reply.answer.first_token_s

    found: dict[str, list[float]] = {f"after_{wait:g}_s": [] for wait in after}
    alone: dict[str, list[float]] = {name: [] for name in found}
    left: list[float] = []
    first_token()
    for _ in range(rounds):
        for name, wait in zip(found, after, strict=True):
            alone[name].append(first_token())
            seconds, gone = come_back(assistant, wait, first_token)
            found[name].append(seconds)
            left.append(gone)
    return {
        "ratio": {name: ratio(found[name], alone[name]) for name in found},
        "seconds": {**medians(found), "no_run": medians(alone)},
        "left_s": {"median": medians({"all": left})["all"], "most": round(max(left), 3)},
        "rounds": rounds,
    }


def come_back(assistant: Assistant, wait: float, first_token: Callable[[], float]) -> tuple[float, float]:
    """Seconds to the first token of a question `wait` seconds after a run was left, and until the run was gone."""
    job = at_work(assistant)
    gone: list[float] = []

    def leave() -> None:
        began = time.perf_counter()
        job.leave()
        gone.append(time.perf_counter() - began)

    leaving = threading.Thread(target=leave)
    leaving.start()
    time.sleep(wait)
    seconds = first_token()
    leaving.join()
    return seconds, gone[0]


def at_work(assistant: Assistant) -> Job:
    """A run, gone on with where there is one, as soon as it computes."""
    job = assistant.learn.start("person")
    until = time.monotonic() + MOST_S
    while job.progress().phase not in AT_WORK:
        if time.monotonic() > until:
            raise RuntimeError(f"the run did not get to work within {MOST_S:g} s: {job.progress().phase}")
        time.sleep(0.1)
    time.sleep(2.0)
    return job


if __name__ == "__main__":
    main()
