"""The trainer over a plain loop that does the same maths: samples a second, memory, and start to first gradient.

    python -m benchmarks training [--model FILE.gguf] [--samples 12] [--rounds 2] [--threads N] [--json]

Each side is a process of its own. The plain loop is transformers + PEFT on the same weights: padded batches of
`--batch` samples, logits of every position, passes of base, teacher and policy over whole sequences, then the same
loss (Binary RL, top-K OPD and KL) and AdamW. `ratio_samples`: samples a second of the trainer over its.
`ratio_memory`: the most memory each process held, its libraries included. `ratio_start`: from the start of the
process to the first gradient, over loading through transformers' GGUF path with its tokenizer. `loss_off`: by what
share the two losses of the first step differ. TRL has no trainer of this loss; it is not compared.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from .sidebyside import child, options_of, peak_bytes, ratio, say

RANK, ALPHA = 16, 32
PROMPT, HINTED, RESPONSE = 60, 80, (40, 140)
"""Tokens: of prompts, of prompts with a hint, and of the shortest and longest responses."""


def samples_of(count: int, vocabulary: int) -> list[Any]:
    """The same on both sides: text-like token ids of several lengths, every other one scored badly."""
    import numpy as np

    from claw_trainer.batches import Sample

    random = np.random.default_rng(5)
    made = []
    for number in range(count):
        length = RESPONSE[0] + (RESPONSE[1] - RESPONSE[0]) * number // max(1, count - 1)
        prompt, extra, response = (
            tuple(int(token) for token in random.integers(10, min(vocabulary, 20_000), size))
            for size in (PROMPT, HINTED - PROMPT, length)
        )
        score = 1.0 if number % 2 else -1.0
        made.append(Sample(prompt, response, teacher_prompt_ids=(*prompt, *extra), score=score))
    return made


def ours(model: Path, count: int, steps: int, threads: int, began: float) -> dict[str, Any]:
    import claw_trainer  # isort: skip  # noqa: F401  before torch
    import torch

    from claw_trainer.policy import Policy
    from claw_trainer.step import Objective, Trainer
    from claw_trainer.weights import load_base

    torch.set_num_threads(threads)
    policy = Policy(load_base(model), rank=RANK, alpha=ALPHA)
    trainer = Trainer(policy, Objective())
    first: list[float] = []
    policy.parameters()[0].register_post_accumulate_grad_hook(lambda _: first.append(time.time() - began))
    seconds, losses = [], []
    for _ in range(steps):
        trainer.references.restore({})  # Each step pays for its references, as new answers do.
        started = time.perf_counter()
        losses.append(trainer.step(samples_of(count, policy.base.model.config.vocab_size))["loss"])
        seconds.append(time.perf_counter() - started)
    return {"seconds": seconds, "loss": losses[0], "first_gradient_s": first[0], "peak": peak_bytes()}


def plain(model: Path, count: int, steps: int, threads: int, began: float, batch: int) -> dict[str, Any]:
    import torch
    from peft import LoraConfig, get_peft_model

    from claw_local.adapters.gguf import MODULES
    from claw_trainer.losses import token_weights
    from claw_trainer.references import Reference
    from claw_trainer.step import Objective, Sums, gather_rows, objective_loss
    from claw_trainer.weights import load_base

    torch.set_num_threads(threads)
    base = load_base(model).model
    base.config._attn_implementation = "sdpa"
    config = LoraConfig(
        r=RANK, lora_alpha=ALPHA, target_modules=sorted({name.split(".")[1] for name in MODULES}), task_type="CAUSAL_LM"
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        policy: Any = get_peft_model(base, config)
    optimiser = torch.optim.AdamW(
        [p for p in policy.parameters() if p.requires_grad], lr=3e-4, betas=(0.9, 0.98), weight_decay=0.0
    )
    objective = Objective()
    first: list[float] = []
    next(p for p in policy.parameters() if p.requires_grad).register_post_accumulate_grad_hook(
        lambda _: first.append(time.time() - began)
    )

    def logits_of(prompts: list[tuple[int, ...]], responses: list[tuple[int, ...]]) -> list[Any]:
        """[T, V] of each response, out of one padded batch."""
        whole = [[*prompt, *response] for prompt, response in zip(prompts, responses, strict=True)]
        length = max(map(len, whole))
        ids = torch.tensor([row + [0] * (length - len(row)) for row in whole])
        mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in whole])
        logits = policy(input_ids=ids, attention_mask=mask, use_cache=False).logits.float()  # [B, L, V]
        return [
            logits[n, len(prompt) - 1 : len(prompt) + len(response) - 1]
            for n, (prompt, response) in enumerate(zip(prompts, responses, strict=True))
        ]

    seconds, losses = [], []
    for _ in range(steps):
        started = time.perf_counter()
        samples = samples_of(count, base.config.vocab_size)
        every = token_weights([len(sample.response_ids) for sample in samples], [1.0] * len(samples))
        shares = every.split([len(sample.response_ids) for sample in samples])
        sums = Sums()
        optimiser.zero_grad()
        for at in range(0, len(samples), batch):
            part = samples[at : at + batch]
            responses = [sample.response_ids for sample in part]
            targets = [torch.tensor(response)[:, None] for response in responses]
            with torch.no_grad(), policy.disable_adapter():
                based = logits_of([sample.prompt_ids for sample in part], responses)
                taught = logits_of([sample.teacher_prompt_ids or () for sample in part], responses)
            references = []
            for b, t, y in zip(based, taught, targets, strict=True):
                b, t = b.log_softmax(1), t.log_softmax(1)
                top = t.topk(objective.top_k, dim=1)
                references.append(Reference(b.gather(1, y)[:, 0], t.gather(1, y)[:, 0], top.indices, top.values))
            mine = torch.cat(logits_of([sample.prompt_ids for sample in part], responses))
            rows = gather_rows(part, references, torch.cat(shares[at : at + batch]))
            loss, _ = objective_loss(mine, rows, None, objective, sums)
            loss.backward()
        torch.nn.utils.clip_grad_norm_([p for p in policy.parameters() if p.requires_grad], 1.0)
        optimiser.step()
        seconds.append(time.perf_counter() - started)
        losses.append(sums.total["loss"])
    return {"seconds": seconds, "loss": losses[0], "first_gradient_s": first[0], "peak": peak_bytes()}


def through_transformers(model: Path, threads: int, began: float) -> dict[str, Any]:
    """From the start to a first gradient of one sample, the way transformers' documentation shows for GGUF."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(threads)
    tokenizer = AutoTokenizer.from_pretrained(str(model.parent), gguf_file=model.name)
    base = AutoModelForCausalLM.from_pretrained(str(model.parent), gguf_file=model.name, dtype=torch.float32)
    policy: Any = get_peft_model(base, LoraConfig(r=RANK, target_modules="all-linear", task_type="CAUSAL_LM"))
    ids = tokenizer("What is rain? Rain is water that falls from clouds.", return_tensors="pt")["input_ids"]
    policy(input_ids=ids, labels=ids).loss.backward()
    return {"first_gradient_s": time.time() - began}


def first_gradient(model: Path, threads: int, began: float) -> dict[str, Any]:
    """The same through the trainer: its ids come from llama.cpp, which the process that learns has open already."""
    import claw_trainer  # isort: skip  # noqa: F401  before torch
    import torch

    from claw_trainer.batches import Sample
    from claw_trainer.policy import Policy
    from claw_trainer.step import Objective, Trainer
    from claw_trainer.weights import load_base

    torch.set_num_threads(threads)
    policy = Policy(load_base(model), rank=RANK, alpha=ALPHA)
    first: list[float] = []
    policy.parameters()[0].register_post_accumulate_grad_hook(lambda _: first.append(time.time() - began))
    Trainer(policy, Objective()).step([Sample(tuple(range(10, 14)), tuple(range(14, 23)), score=1.0)])
    return {"first_gradient_s": first[0]}


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--side":
        side, model, count, steps, threads, batch, began = sys.argv[2:9]
        numbers = (Path(model), int(count), int(steps), int(threads), float(began))
        if side == "ours":
            found = ours(*numbers)
        elif side == "plain":
            found = plain(*numbers, int(batch))
        elif side == "first":
            found = first_gradient(numbers[0], numbers[3], numbers[4])
        else:
            found = through_transformers(numbers[0], numbers[3], numbers[4])
        print(json.dumps(found))
        return

    def more(parser: Any) -> None:
        parser.add_argument("--samples", type=int, default=12, help="of a step")
        parser.add_argument("--batch", type=int, default=4, help="samples in a batch of the plain loop")

    options = options_of("training", __doc__, rounds=2, more=more)
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in ("ours", "plain", "first", "transformers")}
    for _ in range(options.rounds):
        for side, results in found.items():
            arguments = (side, options.model, options.samples, 2, options.threads, options.batch, time.time())
            results.append(child("benchmarks.training", "--side", *map(str, arguments)))
    # The last of each process's steps: the first one warms up.
    rates = {side: [options.samples / result["seconds"][-1] for result in found[side]] for side in ("ours", "plain")}
    peaks = {side: [float(result["peak"]) for result in found[side]] for side in ("ours", "plain")}
    starts = {side: [result["first_gradient_s"] for result in found[side]] for side in ("first", "transformers")}
    mine, other = found["ours"][0]["loss"], found["plain"][0]["loss"]
    say(
        {
            "ratio_samples": ratio(rates["ours"], rates["plain"]),
            "ratio_memory": ratio(peaks["ours"], peaks["plain"]),
            "ratio_start": ratio(starts["first"], starts["transformers"]),
            "loss_off": round(abs(mine - other) / abs(other), 5),
            "samples_per_s": {side: [round(rate, 3) for rate in values] for side, values in rates.items()},
            "peak_mb": {side: [round(value / 2**20) for value in values] for side, values in peaks.items()},
            "first_gradient_s": {side: [round(value, 2) for value in values] for side, values in starts.items()},
        },
        options,
    )


if __name__ == "__main__":
    main()
