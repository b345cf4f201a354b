"""How long one judgement takes, what of it dominates, and what the judge costs a reply that begins meanwhile.

    python -m benchmarks.judging [--model FILE.gguf] [--adapter JUDGE.gguf] [--json]

A judgement is timed as it happens in a chat: what the judge knows before is read already, a new message comes. Then
replies are begun with and without a judge at work on another thread, and the time to the first token is compared.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import threading
import time
from collections.abc import Sequence
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import Any

import numpy as np

from claw_local.adapters.registry import file_sha256
from claw_local.engine._threads import usable_cores
from claw_local.engine.base import AdapterSlot, Cancelled, Engine, Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.engine.models import embedded_model
from claw_local.judge.examples import Example, shipped
from claw_local.judge.judge import Judge
from claw_local.judge.opening import make_judge
from claw_local.judge.personal import JudgeAdapters
from claw_local.settings import JudgeSettings, ModelSettings

JUDGEMENTS = 60
BEGINNINGS = 120
BATCHES = (4, 8, 16, 32)
"""Tokens read at once; the judge reads at most 32."""


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds: median, 90th and 99th percentile."""
    values = np.array(seconds) * 1000
    return {name: round(float(np.percentile(values, at)), 1) for name, at in (("p50", 50), ("p90", 90), ("p99", 99))}


def judgements(engine: Engine, judge: Judge, examples: Sequence[Example]) -> dict[str, Any]:
    """What one judgement takes, and how much of that is the model reading what is new."""
    judge.judge("", "", "hello")
    whole, reading, new = [], [], []
    for example in examples:
        tokens, _ = judge.prompt_of(example.question, example.reply, example.next)
        known, _ = judge.prompt_of(example.question, example.reply, "")
        new.append(len(tokens) - sum(1 for _ in takewhile(bool, map(eq, known, tokens))))
        judge.read_ahead(example.question, example.reply)
        started = time.perf_counter()
        judge.judge(example.question, example.reply, example.next)
        whole.append(time.perf_counter() - started)
    for example in examples:
        tokens, _ = judge.prompt_of(example.question, example.reply, example.next)
        judge.read_ahead(example.question, example.reply)
        started = time.perf_counter()
        engine.next_logits([], tokens)
        reading.append(time.perf_counter() - started)
    return {
        "judgements": len(whole),
        "ms": spread(whole),
        "model_ms": spread(reading),
        "new_tokens": {"p50": float(np.percentile(new, 50)), "p99": float(np.percentile(new, 99))},
        "ms_per_new_token": round(1000 * statistics.fmean(reading) / statistics.fmean(new), 2),
    }


def by_batch(engine: Engine) -> dict[str, float]:
    """Milliseconds a token takes when so many are read at once: what judging several messages together could save."""
    ids = engine.tokenize("Rain fell on the hills and the sea, and nobody minded. " * 20)
    found = {}
    for size in BATCHES:
        took = []
        for number in range(8):
            engine.next_logits([], ids[:2])
            started = time.perf_counter()
            engine.next_logits([], [*ids[:2], *ids[number + 3 : number + 3 + size]])
            took.append((time.perf_counter() - started) * 1000 / size)
        found[str(size)] = round(statistics.median(took), 2)
    return found


def first_tokens(engine: Engine, judge: Judge | None, examples: Sequence[Example]) -> list[float]:
    """Seconds to the first token of replies, each to another question; with a judge, while it judges all the time."""
    stop = threading.Event()

    def work() -> None:
        assert judge is not None
        while True:
            for example in examples:
                try:
                    judge.judge(example.question, example.reply, example.next, cancel=stop)
                except Cancelled:
                    return

    worker = threading.Thread(target=work, daemon=True) if judge is not None else None
    if worker is not None:
        worker.start()
    found = []
    for number in range(BEGINNINGS):
        text = f"Question number {number}: {examples[number % len(examples)].question}"
        made, pieces = engine.generate(engine.render([Message("user", text)]), Sampling(max_tokens=1, seed=1))
        for _ in pieces:
            pass
        found.append(made.first_token_s)
        time.sleep(0.05)
    stop.set()
    if worker is not None:
        worker.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.judging", description=__doc__)
    parser.add_argument(
        "--model", type=Path, default=embedded_model(), help="a GGUF file; the embedded one if not said"
    )
    parser.add_argument("--adapter", type=Path, help="a judge's adapter for it")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    examples = [example for example in shipped("dev") if example.next_role == "user"][:JUDGEMENTS]
    adapters = JudgeAdapters()
    if options.adapter:
        adapters = JudgeAdapters((AdapterSlot(options.adapter),), True, file_sha256(options.adapter))
    with LlamaCppEngine.open(options.model, ModelSettings(), cache_dir=None) as engine:
        judge = make_judge(engine, JudgeSettings(), None, adapters=adapters)
        assert isinstance(judge, Judge)
        result: dict[str, Any] = {
            "model": engine.info.name,
            "judge": judge.identity.version,
            "machine": platform.processor() or platform.machine(),
            "cores": usable_cores(),
            **judgements(engine, judge, examples),
            "ms_per_token_by_batch": by_batch(engine),
        }
        first_tokens(engine, None, examples)
        alone = first_tokens(engine, None, examples)
        beside = first_tokens(engine, judge, examples)
        result["first_token_ms"] = {"alone": spread(alone), "with_judge": spread(beside)}
        result["first_token_growth_p99"] = round(float(np.percentile(beside, 99) / np.percentile(alone, 99)) - 1, 3)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
