"""Another adapter in an open chat, its first token included, over loading the model again with the LoRA.

    python -m benchmarks swap [--model FILE.gguf] [--rank 16] [--rounds 5] [--threads N] [--json]

`ratio`: seconds from the change to the first token of the next reply in a short chat, over loading model and LoRA in
llama.cpp and reading the same prompt. `ratio_swap_alone`: the change itself, with a file that was used before. The
adapters are random, on all linear layers.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from claw_local.adapters.gguf import MODULES, BaseShape, write_gguf
from claw_local.adapters.peft import PeftLora
from claw_local.engine.base import AdapterSlot, Message, Prompt, Sampling
from claw_local.engine.gguf_file import read_header
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.settings import ModelSettings

from .bare import Bare
from .sidebyside import in_turns, medians, options_of, ratio, say

CHAT = [
    Message("user", "What is rain?"),
    Message("assistant", "Rain is water that falls from clouds, where it gathered in drops."),
    Message("user", "And what is snow?"),
]


def random_lora(model: Path, target: Path, rank: int, seed: int) -> Path:
    """A small random LoRA on all linear layers of a model."""
    random, header = np.random.default_rng(seed), read_header(model)
    weights = {}
    for name, tensor in header.tensors.items():
        parts = name.split(".")
        module = {gguf: module for module, gguf in MODULES.items()}.get(parts[2]) if parts[0] == "blk" else None
        if module is not None and parts[-1] == "weight":
            inputs, outputs = tensor.shape
            a = random.standard_normal((rank, inputs)).astype(np.float32) * 0.01
            weights[int(parts[1]), module] = (a, random.standard_normal((outputs, rank)).astype(np.float32) * 0.01)
    return write_gguf(PeftLora(weights=weights, alpha=float(rank)), BaseShape.of(model), target)


def main() -> None:
    options = options_of("swap", __doc__, rounds=5, more=lambda p: p.add_argument("--rank", type=int, default=16))
    with tempfile.TemporaryDirectory() as folder:
        files = [random_lora(options.model, Path(folder) / f"{n}.gguf", options.rank, n) for n in range(2)]
        settings = ModelSettings(threads=options.threads)
        with LlamaCppEngine.open(options.model, settings, cache_dir=None) as engine:
            prompt = engine.render(CHAT)
            turn = iter(range(10**6))

            def answer() -> None:
                for _ in engine.generate(Prompt(prompt.token_ids), Sampling(max_tokens=1, seed=1))[1]:
                    pass

            def swap() -> float:
                started = time.perf_counter()
                engine.set_adapters([AdapterSlot(files[next(turn) % 2])])
                answer()
                return time.perf_counter() - started

            def alone() -> float:
                started = time.perf_counter()
                engine.set_adapters([AdapterSlot(files[next(turn) % 2])])
                return time.perf_counter() - started

            def reload() -> float:
                started = time.perf_counter()
                bare = Bare(options.model, threads=options.threads, lora=files[0])
                bare.read(prompt.token_ids)
                seconds = time.perf_counter() - started
                bare.close()
                return seconds

            found = in_turns({"swap": swap, "alone": alone, "reload": reload}, options.rounds)
    say(
        {
            "ratio": ratio(found["swap"], found["reload"]),
            "ratio_swap_alone": ratio(found["alone"], found["reload"]),
            "prompt_tokens": len(prompt.token_ids),
            "seconds": medians(found, 5),
        },
        options,
    )


if __name__ == "__main__":
    main()
