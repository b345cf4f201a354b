"""What several clients at once get, over what one gets; and how long a short question waits beside a long prompt.

    python -m benchmarks.serving [--model FILE.gguf] [--clients 8] [--rounds 3] [--samples 5] [--threads N] [--json]

All in one run, on one machine, in rounds that take turns: an engine that writes one reply after the other with one
client; one that decodes together, with one client; the same with all clients. Every client asks as the server does,
with the settings' own sampling. Then a short question is asked on its own, and again while a prompt of 2,000 tokens is
read; and memory is looked at while requests come and go.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from claw_local.engine._threads import usable_cores
from claw_local.engine.base import Generation, Message, Prompt, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.engine.models import embedded_model
from claw_local.engine.together import asked_by
from claw_local.settings import ModelSettings

QUESTIONS = (
    "Write a story about a lighthouse.",
    "How do I bake bread?",
    "Explain how rain forms.",
    "What should I see in Lisbon?",
    "Tell me about the moon.",
    "How do bees make honey?",
    "Describe a day on a farm.",
    "Why do leaves turn red in autumn?",
)
REPLY = 64
"""Tokens of a reply, at most."""
EACH = 2
"""Replies a client asks for in one round, one after the other."""
LONG = 2000
SHORT = "What is two plus two?"
CHURN = 200


def ask(engine: LlamaCppEngine, prompt: Prompt, sampling: Sampling, client: int) -> Generation:
    with asked_by(client):
        generation, pieces = engine.generate(prompt, sampling)
        for _ in pieces:
            pass
    return generation


def round_of(engine: LlamaCppEngine, clients: int, number: int) -> tuple[float, list[Generation]]:
    """Tokens a second of so many clients that ask at the same time, and what each was given."""
    found: list[Generation] = []

    def client(which: int) -> None:
        for n in range(EACH):
            text = f"{QUESTIONS[(which + n) % len(QUESTIONS)]} ({number}.{which}.{n})"
            sampling = Sampling(max_tokens=REPLY, seed=1000 * number + 10 * which + n)
            found.append(ask(engine, engine.render([Message("user", text)]), sampling, which))

    threads = [threading.Thread(target=client, args=(which,)) for which in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    return sum(len(generation.response_ids) for generation in found) / seconds, found


def throughput(alone: LlamaCppEngine, together: LlamaCppEngine, clients: int, rounds: int) -> dict[str, Any]:
    rates: dict[str, list[float]] = {"one_after_the_other": [], "one_client": [], "all_clients": []}
    slowest: list[float] = []
    for number in range(rounds + 1):
        found = {
            "one_after_the_other": round_of(alone, 1, 3 * number)[0],
            "one_client": round_of(together, 1, 3 * number + 1)[0],
        }
        found["all_clients"], generations = round_of(together, clients, 3 * number + 2)
        if number == 0:
            continue  # The first one warms up.
        for name, rate in found.items():
            rates[name].append(rate)
        took = [generation.total_s / max(1, len(generation.response_ids)) for generation in generations]
        slowest.append(max(took) / statistics.median(took))
    every, one = rates["all_clients"], rates["one_client"]
    return {
        "clients": clients,
        "tokens_per_s": {name: round(statistics.median(values), 1) for name, values in rates.items()},
        "ratio": round(statistics.median(a / b for a, b in zip(every, one, strict=True)), 2),
        "ratio_over_one_after_the_other": round(
            statistics.median(a / b for a, b in zip(every, rates["one_after_the_other"], strict=True)), 2
        ),
        "slowest_reply_over_median": round(statistics.median(slowest), 2),
    }


def first_tokens(engine: LlamaCppEngine, samples: int) -> dict[str, Any]:
    """Milliseconds to the first token of a short question: on its own, and while a long prompt is being read."""
    words = engine.tokenize("Rain fell on the hills and the sea, and nobody minded. ")
    idle, beside, reading = [], [], []
    for number in range(samples):
        short = engine.render([Message("user", f"{SHORT} ({number})")])
        idle.append(ask(engine, short, Sampling(max_tokens=1), 1).first_token_s)
        beginning = engine.tokenize(f"Number {number}. ")
        prompt = [*beginning, *(words * (LONG // len(words) + 1))][:LONG]
        long = engine.submit(prompt, Sampling(max_tokens=1), client=2)
        time.sleep(0.5)
        again = engine.render([Message("user", f"{SHORT} ({number} again)")])
        beside.append(ask(engine, again, Sampling(max_tokens=1), 1).first_token_s)
        if long.done:
            raise RuntimeError("The long prompt was read before the short question came: nothing was measured.")
        reading.append(long.wait(600).first_token_s)
    return {
        "alone": round(1000 * statistics.median(idle)),
        f"beside_{LONG}_tokens": round(1000 * statistics.median(beside)),
        f"beside_{LONG}_tokens_most": round(1000 * max(beside)),
        f"if_it_waited_for_{LONG}_tokens": round(1000 * statistics.median(reading)),
    }


def churn(engine: LlamaCppEngine) -> dict[str, float]:
    """Megabytes of memory before and after many requests came and went."""
    process = psutil.Process()
    found: dict[str, float] = {}
    for name, count in (("warm", CHURN // 4), ("after", CHURN)):
        requests = [
            engine.submit(engine.tokenize(f"{name} {n}?"), Sampling(max_tokens=2), client=n % 8) for n in range(count)
        ]
        for request in requests:
            request.wait(600)
        found[name] = round(process.memory_info().rss / 2**20, 1)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks.serving", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=embedded_model(), help="a GGUF file; else the embedded one")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=5, help="how often the long prompt is read")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as the machine leaves free")
    parser.add_argument("--json", action="store_true", help="the figures as one JSON object")
    options = parser.parse_args(arguments)
    process = psutil.Process()
    settings = ModelSettings(threads=options.threads)
    many = ModelSettings(threads=options.threads, together=max(2, options.clients))
    with LlamaCppEngine.open(options.model, settings, cache_dir=None) as alone:
        before = process.memory_info().rss
        with LlamaCppEngine.open(options.model, many, cache_dir=None) as together:
            result: dict[str, Any] = {
                "model": together.info.name,
                "machine": platform.processor() or platform.machine(),
                "cores": usable_cores(),
                **throughput(alone, together, options.clients, options.rounds),
                "first_token_ms": first_tokens(together, options.samples),
                "memory_mb": {
                    "engine_for_all": round((process.memory_info().rss - before) / 2**20, 1),
                    f"process_over_{CHURN}_requests": churn(together),
                },
            }
    if options.json:
        print(json.dumps(result, indent=2))
        return
    rates, first = result["tokens_per_s"], result["first_token_ms"]
    print(f"{result['model']} on {result['cores']} cores ({result['machine']}), tokens per second:")
    print(f"one after the other {rates['one_after_the_other']}, one client {rates['one_client']}")
    print(f"{options.clients} clients {rates['all_clients']}: {result['ratio']} times one client's")
    print(f"slowest reply: {result['slowest_reply_over_median']} times the median's time a token")
    print("first token of a short question, in ms: " + ", ".join(f"{name} {ms}" for name, ms in first.items()))
    print(f"memory in MB: {result['memory_mb']}")


if __name__ == "__main__":
    main()
