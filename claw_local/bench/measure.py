"""Measuring one model as it is used: loading, reading, writing, judging, and changing adapters.

Each number is what a person waits for, not what the hardware could do at best. It must never change anything that is
kept: no chat, no signal, no setting.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..adapters.registry import Registry, slots
from ..assistant import Assistant
from ..engine.base import Message, Prompt, Sampling
from ..engine.llama_cpp import LlamaCppEngine
from ..judge.opening import make_judge
from ..judge.verdict import AnyJudge

PROMPT_TOKENS = (64, 512)
"""Fewest and most tokens of the prompt that is read: as many as take a few seconds here."""
READING_S = 4.0
REPLY_TOKENS = 128
JUDGEMENTS = 5
SWAPS = 5
LIMIT_S = 6.0
"""Longest that one number is measured."""

QUESTION = "Tell me about the weather in the mountains, the sea and the plains, and how people live with it. "


@dataclass(frozen=True)
class Measured:
    """What was seen. Seconds, and tokens a second; None: there was nothing to measure.

    Attributes:
        load_s: reading the model from a warm disk cache until it can answer.
        prompt_tokens, prompt_rate: tokens read, and read a second. decode_rate: tokens written a second.
        first_token_s: from a short question to the first token, with nothing kept from before.
        judge_s: one judgement, the judge's own prompt already read (median).
        swap_s: putting an adapter in and out again (median); only where there is one.
        notes: what makes a number less sure.
    """

    model: str
    size_bytes: int
    threads: int
    gpu: bool
    load_s: float
    prompt_tokens: int
    prompt_rate: float
    first_token_s: float
    decode_tokens: int
    decode_rate: float
    judge_s: float
    swap_s: float | None
    notes: list[str] = field(default_factory=list)


def measure(assistant: Assistant, on_step: Callable[[str], None] = lambda step: None) -> Measured:
    """Measure the model in use. Raises ModelError, EngineError."""
    from ..engine._native import can_use_gpu
    from ..engine._threads import usable_cores

    settings, path = assistant.settings.model, assistant.model_path
    on_step("loading")
    # The file's checksum is computed once and remembered; reading it also brings the file into the disk cache.
    sha256 = assistant.model_sha256
    started = time.perf_counter()
    with LlamaCppEngine.open(path, settings, cache_dir=assistant.paths.data) as engine:
        load_s = time.perf_counter() - started
        on_step("answering")
        first_token_s, rate = _first_token(engine)
        on_step("reading")
        prompt_tokens, prompt_rate = _reading(engine, rate)
        on_step("writing")
        decode_tokens, decode_rate = _writing(engine)
        on_step("judging")
        judge_s = _judging(make_judge(engine, assistant.settings.judge, assistant.store))
        on_step("adapters")
        swap_s = _swapping(engine, Registry(assistant.store), sha256)
    notes = (
        [] if decode_tokens >= REPLY_TOKENS // 4 else [f"Only {decode_tokens} tokens were written in {LIMIT_S:.0f} s."]
    )
    return Measured(
        model=engine.info.name,
        size_bytes=path.stat().st_size,
        threads=settings.threads or usable_cores(),
        gpu=settings.gpu_layers != 0 and can_use_gpu(),
        load_s=load_s,
        prompt_tokens=prompt_tokens,
        prompt_rate=prompt_rate,
        first_token_s=first_token_s,
        decode_tokens=decode_tokens,
        decode_rate=decode_rate,
        judge_s=judge_s,
        swap_s=swap_s,
        notes=notes,
    )


def _first_token(engine: LlamaCppEngine) -> tuple[float, float]:
    """(seconds, tokens a second) of a short question that is the first one."""
    prompt = engine.render([Message("user", "What is rain?")], reserve=REPLY_TOKENS)
    made, pieces = engine.generate(prompt, Sampling(max_tokens=1, seed=1))
    for _ in pieces:
        pass
    return made.first_token_s, made.evaluated / made.first_token_s


def _reading(engine: LlamaCppEngine, rate: float) -> tuple[int, float]:
    """(tokens, tokens a second) of reading a prompt that is new from its first token on."""
    fewest, most = PROMPT_TOKENS
    room = min(max(fewest, int(rate * READING_S)), most, engine.info.context - 8)
    ids = engine.tokenize("Reading. " + QUESTION * (room // 10))[:room]
    made, pieces = engine.generate(Prompt(tuple(ids)), Sampling(max_tokens=1, seed=1))
    for _ in pieces:
        pass
    return made.evaluated, made.evaluated / made.first_token_s


def _writing(engine: LlamaCppEngine) -> tuple[int, float]:
    """(tokens, tokens a second) of writing, the prompt's reading left out."""
    prompt = engine.render([Message("user", "Tell me a long story about a lighthouse.")], reserve=REPLY_TOKENS)
    stop = threading.Event()
    timer = threading.Timer(LIMIT_S, stop.set)
    timer.start()
    try:
        made, pieces = engine.generate(prompt, Sampling(max_tokens=REPLY_TOKENS, temperature=0.8, seed=1), cancel=stop)
        for _ in pieces:
            pass
    finally:
        timer.cancel()
    count = len(made.response_ids)
    return count, (count - 1) / (made.total_s - made.first_token_s) if count > 1 else 0.0


def _judging(judge: AnyJudge) -> float:
    said = [
        "Too long, please.",
        "Thanks, that helps.",
        "And what about snow?",
        "No, that is wrong.",
        "Shorter next time.",
    ]
    judge.judge("What is rain?", "Rain is water.", "Great, thank you!")  # Its own prompt is read once and kept.
    took = []
    until = time.perf_counter() + LIMIT_S
    for text in said[:JUDGEMENTS]:
        started = time.perf_counter()
        judge.judge("What is rain?", "Rain is water.", text)
        took.append(time.perf_counter() - started)
        if time.perf_counter() > until:
            break
    return statistics.median(took)


def _swapping(engine: LlamaCppEngine, registry: Registry, sha256: str) -> float | None:
    own = [record for record in registry.list() if record.model_sha256 == sha256 and Path(record.gguf_path).is_file()]
    if not own:
        return None
    adapter = slots(own[0])
    engine.set_adapters(adapter)  # The file is loaded once; what is measured is the change.
    took = []
    for _ in range(SWAPS):
        started = time.perf_counter()
        engine.set_adapters(())
        engine.set_adapters(adapter)
        took.append(time.perf_counter() - started)
    return statistics.median(took)
