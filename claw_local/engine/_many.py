"""One reply for each of many prompts, decoded together, for whoever waits for all of them. Others' replies go first."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from ._batch import cells, waves, write_together
from ._machine import CHAT_BATCH, Machine, is_set
from ._native import Adapters, NativeContext
from ._writing import Writing
from .base import Generation, Sampling


def write_many(
    machine: Machine,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    adapters: Adapters,
    cancel: threading.Event | None,
) -> list[Generation]:
    """See `Engine.generate_many`. Raises EngineError: a prompt is empty or fills the whole context."""
    started = time.perf_counter()
    seeds = [None if sampling.seed is None else sampling.seed + n for n in range(len(prompts))]
    generations = [machine.begin(prompt, sampling, seed) for prompt, seed in zip(prompts, seeds, strict=True)]
    if not prompts:
        return []
    limit, turns = machine.limit, machine.turns
    runs = waves(prompts, sampling.max_tokens, limit)
    room = max(cells([prompts[n] for n in run], sampling.max_tokens, limit) for run in runs)
    together = max(len(run) for run in runs)
    who = object()
    context: NativeContext | None = None
    writings: list[Writing] = []
    try:
        running = turns.take(who, cancel)
        if running:
            with machine.computing():
                context = machine.new_context(room, batch=CHAT_BATCH, sequences=together, outputs=together)
                context.apply(adapters)
        for run in runs:
            writings = [Writing(generations[n], machine.model, limit=limit, started=started) for n in run]
            steps = iter(()) if context is None else write_together(context, writings)
            while running := running and not is_set(cancel) and turns.give_way(who, cancel):
                with machine.computing():
                    if next(steps, who) is who:
                        break
            for writing in writings:
                writing.end("cancelled")
    finally:
        for writing in writings:
            writing.end("cancelled")
        turns.leave(who)
        if context is not None:
            machine.give_back(context)
    return generations
