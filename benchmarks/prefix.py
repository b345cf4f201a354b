"""Judging one turn, over the same prompt without a kept prefix.

    python -m benchmarks prefix [--model FILE.gguf] [--rounds 20] [--threads N] [--json]

Each round judges another labelled message, as in a chat: what the judge knows before is read already.
"""

from __future__ import annotations

import time

from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.judge.examples import shipped
from claw_local.judge.judge import Judge
from claw_local.judge.opening import make_judge
from claw_local.settings import JudgeSettings, ModelSettings

from .sidebyside import medians, options_of, ratio, say


def main() -> None:
    options = options_of("prefix", __doc__, rounds=20)
    examples = [example for example in shipped("dev") if example.next_role == "user"][: options.rounds + 1]
    found: dict[str, list[float]] = {"kept_prefix": [], "nothing_kept": []}
    with LlamaCppEngine.open(options.model, ModelSettings(threads=options.threads), cache_dir=None) as engine:
        judge = make_judge(engine, JudgeSettings(), None)
        assert isinstance(judge, Judge)
        judge.judge("", "", "hello")
        other = engine.tokenize("Something else.")
        lengths = []
        for number, example in enumerate(examples):
            judge.read_ahead(example.question, example.reply)
            started = time.perf_counter()
            judge.judge(example.question, example.reply, example.next)
            kept = time.perf_counter() - started
            tokens, _ = judge.prompt_of(example.question, example.reply, example.next)
            engine.next_logits([], other)  # What was kept is forgotten.
            started = time.perf_counter()
            engine.next_logits([], tokens)
            whole = time.perf_counter() - started
            if number:
                found["kept_prefix"].append(kept)
                found["nothing_kept"].append(whole)
                lengths.append(len(tokens))
    say(
        {
            "ratio": ratio(found["kept_prefix"], found["nothing_kept"]),
            "seconds": medians(found),
            "prompt_tokens": sum(lengths) / len(lengths),
        },
        options,
    )


if __name__ == "__main__":
    main()
