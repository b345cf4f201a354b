"""How far the trainer's log-probabilities are from llama.cpp's, for each way to hold the base, and why.

    python -m benchmarks gap [--model FILE.gguf] [--threads N] [--json]

`nats`: mean |Δ log p| of two texts' tokens against llama.cpp reading each at once on the processor. The last ones are
llama.cpp against itself, reading two tokens at a time, and one at a time, as it does when it writes. `layer_error`:
what a linear layer gives for the very input that llama.cpp had, against what llama.cpp got: relative mean error, with
the input as it is, and rounded to 8 bits as llama.cpp rounds it.
"""

from __future__ import annotations

import claw_trainer  # isort: skip  # noqa: F401  before torch: see claw_trainer.cpu

from pathlib import Path
from typing import Any

import numpy as np
import torch

from claw_trainer.as_in_file import BlockLinear
from claw_trainer.gguf_tensors import GgufFile
from claw_trainer.policy import Policy
from claw_trainer.weights import load_base

from .sidebyside import options_of, say
from .tracing import Trace, Tracer, token_logprobs

TEXTS = (
    "In the morning she made tea, read the newspaper and walked to the small station by the river, where an old man "
    "was selling apples and pears to the travellers who waited for the train to the coast.",
    "Boil the egg for seven minutes, then put it into cold water. The capital of France is Paris, and the river that "
    "runs through it is called the Seine.",
)
WAYS: dict[str, dict[str, Any]] = {
    "float32": {"exact": True},
    "float32, products in bfloat16 where the processor has them": {},
    "bf16": {"precision": "bf16"},
    "nf4": {"hold": "nf4"},
    "as in the file": {"hold": "as-in-file"},
    "as in the file, rounded as llama.cpp rounds": {"hold": "as-in-file", "served": True},
}
INPUTS = {
    "attn_v": "attn_norm",
    "ffn_up": "ffn_norm",
    "ffn_gate": "ffn_norm",
    "ffn_down": "ffn_swiglu",
    "attn_output": "kqv_out",
}
OUTPUTS = {
    "attn_v": "Vcur",
    "ffn_up": "ffn_up",
    "ffn_gate": "ffn_gate",
    "ffn_down": "ffn_out",
    "attn_output": "attn_out",
}
"""llama.cpp's names of what goes into a layer, and of what comes out."""


def layer_errors(model: Path, trace: Trace) -> dict[str, list[float]]:
    """Relative mean error of linear layers on llama.cpp's own inputs: not rounded, and rounded."""
    file, blocks = GgufFile(model), 0
    while f"blk.{blocks}.ffn_up.weight" in file.header.tensors:
        blocks += 1
    torch.set_float32_matmul_precision("highest")
    found: dict[str, list[float]] = {"as it is": [], "rounded": []}
    for block in (0, blocks // 2, blocks - 1):
        for part, source in INPUTS.items():
            held = file.blocks(f"blk.{block}.{part}.weight")
            states, got = (trace.values.get(f"{name}-{block}") for name in (source, OUTPUTS[part]))
            if held is None or states is None or got is None or len(states) != len(got):
                continue
            for name, served in (("as it is", False), ("rounded", True)):
                mine = BlockLinear(*held, bias=False, served=served)(torch.from_numpy(states)).numpy()
                found[name].append(float(np.abs(mine - got).mean() / np.abs(got).mean()))
    return found


def main() -> None:
    from claw_local.engine.llama_cpp import LlamaCppEngine
    from claw_local.settings import ModelSettings

    options = options_of("gap", __doc__, rounds=1)
    torch.set_num_threads(options.threads)
    with LlamaCppEngine.open(options.model, ModelSettings(), cache_dir=None) as engine:
        texts = [engine.tokenize(text) for text in TEXTS]
    tracer = Tracer(options.model, threads=options.threads)
    traces = [tracer.read(ids, values=True) for ids in texts]
    served = [token_logprobs(trace.logits, ids) for trace, ids in zip(traces, texts, strict=True)]

    def off(mine: list[Any]) -> dict[str, float]:
        apart = np.concatenate([np.abs(a - b) for a, b in zip(mine, served, strict=True)])
        return {"mean": round(float(apart.mean()), 4), "most": round(float(apart.max()), 3)}

    nats = {}
    for name, how in WAYS.items():
        policy = Policy(load_base(options.model, **how))
        mine = policy.response_logprobs("base", [(ids[:1], ids[1:]) for ids in texts])
        nats[name] = off([found.double().numpy() for found in mine])
    for count, words in ((2, "llama.cpp, two tokens at a time"), (1, "llama.cpp, one token at a time")):
        nats[words] = off([token_logprobs(tracer.read(ids, at_once=count).logits, ids) for ids in texts])
    errors = layer_errors(options.model, traces[0])
    tracer.close()
    say({"nats": nats, "layer_error": {name: float(f"{np.mean(v):.2g}") for name, v in errors.items()}}, options)


if __name__ == "__main__":
    main()
