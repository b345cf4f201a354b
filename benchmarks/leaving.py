"""Leaving: does a run that is left and killed at random moments end with the same adapter, and how soon is it gone?

A few questions are corrected, and learned from twice on copies of the same home: once in peace, once left (the person
came back) or killed (SIGKILL) at random moments, and gone on with until it ends. The embedded model, the product's own
`Assistant`, settings as they are but for the number of steps.

    python -m benchmarks.leaving --times 30 [--steps 8] [--seed 0] [--out FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from claw_local import Assistant
from claw_local.errors import LearnError
from claw_local.idle.job import Job, LearningPaused, LearnResult

from .first_light import CORRECTIONS, TAUGHT

LOOK_S = 0.01


@dataclass
class Gone:
    """How soon a process was gone after a moment.

    Attributes:
        computed_s: seconds until it used no more processor time.
        memory_s: seconds until its memory was given back.
    """

    computed_s: float = 0.0
    memory_s: float = 0.0


@dataclass
class Life:
    """What happened to the run that was not left in peace."""

    left: int = 0
    killed: int = 0
    phases: dict[str, int] = field(default_factory=dict)
    gone: list[Gone] = field(default_factory=list)


def teach(home: Path, count: int) -> None:
    """Ask questions and correct each answer by hand, so that no judge's mood is in it."""
    with Assistant.open(home) as assistant:
        assistant.learn.on()
        for number, question in enumerate(TAUGHT[:count]):
            answer = assistant.ask(question, sampling=assistant.default_sampling(max_tokens=80, seed=number))
            assistant.feedback(answer.message_id, "bad", hint=CORRECTIONS[number % len(CORRECTIONS)])


def watch(process: psutil.Process, since: float) -> Gone:
    """Look at a process until it is gone."""
    gone, used = Gone(), -1.0
    while True:
        try:
            times = process.cpu_times()
            if process.status() == psutil.STATUS_ZOMBIE:
                break
            if times.user + times.system > used:
                used, gone.computed_s = times.user + times.system, time.perf_counter() - since
        except psutil.Error:
            break
        time.sleep(LOOK_S)
    gone.memory_s = time.perf_counter() - since
    return gone


def process_of(job: Job) -> psutil.Process | None:
    """The trainer's process. While it starts, the store still names the program that began it, which is this one."""
    try:
        return psutil.Process(job.pid)
    except psutil.NoSuchProcess:
        return None


def disturb(assistant: Assistant, dice: random.Random, times: int, longest_s: float) -> tuple[LearnResult, Life]:
    """Learn, and leave or kill the run `times` times on the way, each time up to `longest_s` after it has loaded."""
    life = Life()
    while True:
        if life.left + life.killed >= times:
            return assistant.learn.now(), life
        job = assistant.learn.start("person")
        ended = threading.Event()
        outcome: list[Any] = []

        def follow(job: Any = job, ended: threading.Event = ended, outcome: list[Any] = outcome) -> None:
            try:
                outcome.append(LearnResult(**job.follow().result))
            except (LearningPaused, LearnError) as error:
                outcome.append(error)
            ended.set()

        thread = threading.Thread(target=follow)
        thread.start()
        begun_early = dice.random() < 0.2  # Some while it still loads.
        while not ended.wait(0.02) and not begun_early and job.progress().phase in ("starting", "loading", "exam"):
            pass
        moment = dice.uniform(0.0, longest_s)
        process = process_of(job)
        if not ended.wait(moment) and process is not None:
            run = assistant.store.runs.get(job.run_id)
            life.phases[run.phase] = life.phases.get(run.phase, 0) + 1
            kills = dice.random() < 0.5
            since = time.perf_counter()
            if kills:
                life.killed += 1
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            else:
                life.left += 1
                threading.Thread(target=job.leave).start()
            gone = watch(process, since)
            if not kills:
                life.gone.append(gone)
        thread.join()
        if outcome and isinstance(outcome[0], LearnResult):
            return outcome[0], life


def weights(folder: Path) -> dict[str, np.ndarray[Any, Any]]:
    from safetensors.numpy import load_file

    found: dict[str, np.ndarray[Any, Any]] = load_file(folder / "adapter_model.safetensors")
    return found


def learned(assistant: Assistant, result: LearnResult) -> dict[str, Any]:
    record = assistant.adapters.get(result.adapter)
    steps = record.metrics["steps"]
    return {"sha256": record.sha256, "losses": [step["loss"] for step in steps], "peft": Path(record.peft_dir)}


def run(times: int, steps: int, lessons: int, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    os.environ["CLAW_LOCAL_LEARNING__STEPS"] = str(steps)
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="claw-leaving-") as folder:
        taught, peace, disturbed = (Path(folder, name) for name in ("taught", "peace", "disturbed"))
        teach(taught, lessons)
        for copy in (peace, disturbed):
            shutil.copytree(taught, copy)
        say("taught")
        with Assistant.open(peace) as assistant:
            began = time.perf_counter()
            whole = learned(assistant, assistant.learn.now())
            in_peace = time.perf_counter() - began
            whole["weights"] = weights(whole["peft"])
        say(f"in peace: {in_peace:.0f} s")
        with Assistant.open(disturbed) as assistant:
            began = time.perf_counter()
            result, life = disturb(assistant, dice, times, 2.0 * in_peace / max(times, 1))
            again = learned(assistant, result)
            again["weights"] = weights(again["peft"])
            (one,) = assistant.learn.runs()[:1]
        say(f"disturbed: {time.perf_counter() - began:.0f} s, {life.left} times left, {life.killed} times killed")
    apart = [abs(a - b) for a, b in zip(whole["losses"], again["losses"], strict=True)]
    matrices = [float(np.abs(whole["weights"][n] - again["weights"][n]).max()) for n in whole["weights"]]
    return {
        "left": life.left,
        "killed": life.killed,
        "phases": life.phases,
        "same_files": whole["sha256"] == again["sha256"],
        "steps": len(whole["losses"]),
        "most_loss_apart": max(apart),
        "most_weight_apart": max(matrices),
        "stopped_computing_s": summary([gone.computed_s for gone in life.gone]),
        "memory_back_s": summary([gone.memory_s for gone in life.gone]),
        "failures_noted": len(one.failures),
        "seconds_in_peace": round(in_peace, 1),
        "seed": seed,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def summary(seconds: list[float]) -> dict[str, float]:
    if not seconds:
        return {}
    return {"median": round(statistics.median(seconds), 3), "most": round(max(seconds), 3), "count": len(seconds)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=30, help="how often the run is left or killed")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--lessons", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="also write the JSON there")
    options = parser.parse_args()
    report = run(options.times, options.steps, options.lessons, options.seed, lambda words: print(words, flush=True))
    if options.out:
        options.out.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
