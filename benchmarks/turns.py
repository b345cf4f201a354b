"""The first token of turn 2 and later in a long chat, and of a chat gone on with after a restart.

    python -m benchmarks turns [--model FILE.gguf] [--tokens 3000] [--rounds 4] [--threads N] [--json]

`ratio_new_tokens`: seconds to the first token through `Assistant`, over a bare loop that computes the new tokens alone
on a kept prefix. `ratio_restart`: the same question as the first thing after the program was closed and opened (the
model loaded already), over computing the whole prompt.
"""

from __future__ import annotations

import time
from pathlib import Path

from claw_local.assistant import Assistant
from claw_local.engine.base import Sampling
from claw_local.settings import ModelSettings, Settings

from .bare import Bare
from .sidebyside import medians, options_of, own_home, ratio, say

WORDS = "The harbour lay quiet in the morning, and the fishermen mended their nets while the gulls waited for them. "
SAMPLING = Sampling(max_tokens=2, seed=1)


def first_token(assistant: Assistant, text: str, chat: int | None) -> tuple[float, int, int, int]:
    """Seconds to the first piece, the chat, tokens of the prompt, and how many of them were computed."""
    started = time.perf_counter()
    reply = assistant.stream(text, chat=chat, sampling=SAMPLING)
    seconds = 0.0
    for _ in reply:
        seconds = seconds or time.perf_counter() - started
    answer = reply.answer
    return (
        (seconds or answer.first_token_s) - answer.load_s,
        answer.chat_id,
        answer.prompt_tokens,
        answer.evaluated_tokens,
    )


def main() -> None:
    options = options_of(
        "turns",
        __doc__,
        rounds=4,
        more=lambda p: p.add_argument("--tokens", type=int, default=3000, help="of the chat"),
    )
    settings = Settings(model=ModelSettings(threads=options.threads))
    with own_home() as home:
        result = measure(home, options, settings)
    say(result, options)


def measure(home: Path, options: object, settings: Settings) -> dict[str, object]:
    model, rounds, tokens = (getattr(options, name) for name in ("model", "rounds", "tokens"))
    found: dict[str, list[float]] = {"assistant": [], "new_tokens_alone": []}
    bare = Bare(model, threads=settings.model.threads)
    new = []
    with Assistant.open(home, model=model, settings=settings) as assistant:
        said = WORDS * (tokens // 2 // 22)
        _, chat, *_ = first_token(assistant, said, None)
        first_token(assistant, said, chat)
        for number in range(rounds + 1):
            seconds, _, length, evaluated = first_token(assistant, f"And what then? Question {number}, please.", chat)
            bare.keep(0)
            bare.read([5] * (length - evaluated))
            started = time.perf_counter()
            bare.read([6] * evaluated)
            alone = time.perf_counter() - started
            if number:
                found["assistant"].append(seconds)
                found["new_tokens_alone"].append(alone)
                new.append(evaluated)
    again: dict[str, list[float]] = {"after_restart": [], "whole_prompt": []}
    kept = []
    for number in range(rounds):
        with Assistant.open(home, model=model, settings=settings) as assistant:
            assistant.load()
            seconds, _, length, evaluated = first_token(assistant, f"Where were we? Try {number}.", chat)
        bare.keep(0)
        started = time.perf_counter()
        bare.read([5] * length)
        again["whole_prompt"].append(time.perf_counter() - started)
        again["after_restart"].append(seconds)
        kept.append(length - evaluated)
    bare.close()
    return {
        "ratio_new_tokens": ratio(found["assistant"], found["new_tokens_alone"]),
        "ratio_restart": ratio(again["after_restart"], again["whole_prompt"]),
        "seconds": medians({**found, **again}),
        "prompt_tokens": length,
        "new_tokens": new,
        "kept_over_restart_tokens": kept,
    }


if __name__ == "__main__":
    main()
