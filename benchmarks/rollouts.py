"""Fresh answers of hindsight replay drawn together in one batch, over one at a time.

    python -m benchmarks rollouts [--model FILE.gguf] [--count 16] [--tokens 64] [--rounds 3] [--threads N] [--json]

`ratio`: tokens a second of `count` answers to four questions under one system prompt, decoded together with their
common beginnings computed once, over the same answers drawn one after another. `ratio_plain`: over the barest loop on
llama.cpp's C API doing so.
"""

from __future__ import annotations

import time
from dataclasses import replace

from claw_local.engine.base import Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.settings import ModelSettings

from .bare import Bare
from .sidebyside import in_turns, medians, options_of, ratio, say

SYSTEM = "You are a helpful assistant. " * 8
QUESTIONS = ("How do I bake bread?", "Explain how rain forms.", "Tell me about the moon.", "How do bees make honey?")


def main() -> None:
    def more(parser: object) -> None:
        parser.add_argument("--count", type=int, default=16, help="answers of a round")  # type: ignore[attr-defined]
        parser.add_argument("--tokens", type=int, default=64, help="of an answer")  # type: ignore[attr-defined]

    options = options_of("rollouts", __doc__, rounds=3, more=more)
    sampling = Sampling(max_tokens=options.tokens, seed=1)
    bare = Bare(options.model, threads=options.threads)
    with LlamaCppEngine.open(options.model, ModelSettings(threads=options.threads), cache_dir=None) as engine:
        rendered = [engine.render([Message("system", SYSTEM), Message("user", text)]).token_ids for text in QUESTIONS]
        prompts = [rendered[n % len(rendered)] for n in range(options.count)]

        def together() -> float:
            started = time.perf_counter()
            drawn = engine.generate_many(prompts, sampling)
            return sum(len(answer.response_ids) for answer in drawn) / (time.perf_counter() - started)

        def one_at_a_time() -> float:
            started = time.perf_counter()
            count = 0
            for number, prompt in enumerate(prompts):
                (answer,) = engine.generate_many([prompt], replace(sampling, seed=1 + number))
                count += len(answer.response_ids)
            return count / (time.perf_counter() - started)

        def plain() -> float:
            started = time.perf_counter()
            for prompt in prompts:
                bare.keep(0)
                bare.write(bare.read(prompt), options.tokens - 1)
            return len(prompts) * options.tokens / (time.perf_counter() - started)

        found = in_turns({"together": together, "one_at_a_time": one_at_a_time, "plain": plain}, options.rounds)
    bare.close()
    say(
        {
            "ratio": ratio(found["together"], found["one_at_a_time"]),
            "ratio_plain": ratio(found["together"], found["plain"]),
            "tokens_per_s": medians(found, 1),
        },
        options,
    )


if __name__ == "__main__":
    main()
