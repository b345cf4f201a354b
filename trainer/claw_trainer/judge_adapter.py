"""Trains a judge adapter: `python -m claw_trainer.judge_adapter OUT.gguf`. Reads top to bottom.

A LoRA that teaches the base model the judge's questions, from labelled examples: the verdict word's cross-entropy
among the verdict words, nothing else. It works for any architecture the trainer knows: `--model` another GGUF, and that
model's own judge comes of it.

Left out on purpose: any use of the test split.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from claw_local.adapters import gguf
from claw_local.engine.base import Engine
from claw_local.judge import trained
from claw_local.judge.calibration import SCORES, VERDICTS
from claw_local.judge.examples import Example, scored, shipped

from .batches import pack, split_by_tokens
from .padded import PaddedLlama, batch_of, bucket_of
from .policy import Policy

Progress = Callable[[str], None]
NO_CONTEXT = 0.25
"""Share of training cases that are shown without question and reply: the message alone must do, too."""
REWORDED = 0.4
"""Share that are shown in another typing: people care little for capitals and full stops."""


@dataclass(frozen=True)
class Recipe:
    """How a judge adapter is made; written into its record."""

    rank: int = 8
    alpha: int = 16
    learning_rate: float = 2e-3
    ratio: float = 1.0
    """Learning rate of LoRA's B over that of its A."""
    epochs: int = 4
    alone: int = 1
    """Epochs at the beginning in which messages stand without question and reply: short, and most of what there is."""
    second: float = 0.5
    """Share of the second question's examples in each epoch."""
    batch: int = 16
    smoothing: float = 0.05
    micro_tokens: int = 1024
    evaluations: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Case:
    """One prompt [P] with the words it may be answered by [C] (one token each) and the index of the right one."""

    prompt_ids: tuple[int, ...]
    choices: tuple[int, ...]
    target: int


def verdict_case(
    engine: Engine, example: Example, *, dice: random.Random | None = None, alone: float = NO_CONTEXT
) -> Case:
    """An example of the first question; with dice, one of its many ways of being said.

    Args:
        alone: probability, with dice, that question and reply are left out.
    """
    question, reply, message = example.question, example.reply, example.next
    if dice is not None:
        if dice.random() < alone:
            question = reply = ""
        if dice.random() < REWORDED:
            message = retype(message, dice)
    names = {score: VERDICTS.index(name) for name, score in SCORES.items()}
    return Case(
        tuple(engine.tokenize(trained.next_state_prompt(question, reply, message))),
        tuple(engine.tokenize(word)[0] for word in trained.VERDICT_WORDS),
        names[example.score],
    )


def follows_case(engine: Engine, hint: str, reply: str, follows: bool) -> Case:
    """An example of the second question."""
    return Case(
        tuple(engine.tokenize(trained.follows_prompt(hint, reply))),
        tuple(engine.tokenize(word)[0] for word in trained.ANSWER_WORDS),
        trained.ANSWERS.index("yes" if follows else "no"),
    )


def retype(message: str, dice: random.Random) -> str:
    """The same words as someone else would type them."""
    kind = dice.randrange(4)
    if kind == 0:
        return message.lower()
    if kind == 1:
        return re.sub(r"[.!]+(?=\s|$)", "", message)
    if kind == 2:
        return message.replace("'", "").lower()
    return message[:1].upper() + message[1:] if message[:1].islower() else message.rstrip(".") + "!"


class Reader:
    """What the policy says to cases: through `PaddedLlama` where that exists for its architecture."""

    def __init__(self, policy: Policy, *, compiled: bool = False) -> None:
        self.policy = policy
        self._padded = PaddedLlama(policy, compiled=compiled) if policy.base.architecture == "llama" else None

    def logprobs(self, cases: Sequence[Case]) -> torch.Tensor:
        """[B, C] log-probabilities of each case's choices among themselves. All cases have the same choices."""
        if self._padded is not None:
            hidden = self._padded.last_hidden([case.prompt_ids for case in cases])  # [B, D]
            return self._padded.logits(hidden, cases[0].choices).log_softmax(1)
        packed = pack([(case.prompt_ids, case.choices[:1]) for case in cases], self.policy.device)
        logits = self.policy.logits(self.policy.hidden(packed))  # [B, V]
        return logits[:, list(cases[0].choices)].log_softmax(1)

    def groups(self, cases: Sequence[Case], most: int) -> list[list[Case]]:
        """Micro-batches, each with one set of choices and about one length."""
        found: list[list[Case]] = []
        for choices in sorted({case.choices for case in cases}):
            alike = sorted((case for case in cases if case.choices == choices), key=lambda case: len(case.prompt_ids))
            if self._padded is None:
                sizes = split_by_tokens([len(case.prompt_ids) for case in alike], most)
                found += [[alike[n] for n in group] for group in sizes]
                continue
            for bucket in sorted({bucket_of(len(case.prompt_ids)) for case in alike}):
                held = [case for case in alike if bucket_of(len(case.prompt_ids)) == bucket]
                found += [held[n : n + batch_of(bucket)] for n in range(0, len(held), batch_of(bucket))]
        return found


def losses_of(logprobs: torch.Tensor, targets: torch.Tensor, smoothing: float) -> torch.Tensor:
    """[B] cross-entropy in nats, the right answer's share being 1 - smoothing, the rest spread evenly over all.

    Args:
        logprobs: [B, C]
        targets: [B] indices.
    """
    right = logprobs.gather(1, targets[:, None])[:, 0]  # [B]
    return -((1 - smoothing) * right + smoothing * logprobs.mean(1))


def train(
    reader: Reader,
    epoch_cases: Callable[[int], Sequence[Case]],
    recipe: Recipe,
    *,
    evaluate: Callable[[], float] | None = None,
    keep: Callable[[], object] | None = None,
    progress: Progress = lambda words: None,
) -> list[dict[str, float]]:
    """Train the policy's LoRA; `keep` is called after each `evaluate` whose score is the best so far.

    The learning rate rises over 20 steps and falls in a straight line to a fiftieth.

    Args:
        epoch_cases: the cases of an epoch, by its number.
    """
    dice = random.Random(recipe.seed)
    parameters = reader.policy.parameters()
    trained_parameters = [(n, p) for n, p in reader.policy.model.named_parameters() if p.requires_grad]
    rates = {"A": recipe.learning_rate, "B": recipe.learning_rate * recipe.ratio}
    optimiser = torch.optim.AdamW(
        [{"params": [p for n, p in trained_parameters if f"lora_{name}" in n], "peak": rates[name]} for name in rates],
        lr=recipe.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=0.01,
    )
    history: list[dict[str, float]] = []
    best = float("-inf")
    started, seen, total_loss = time.perf_counter(), 0, 0.0
    for epoch in range(recipe.epochs):
        cases = list(epoch_cases(epoch))
        groups = reader.groups(cases, recipe.micro_tokens)
        dice.shuffle(groups)
        steps = _steps(groups, recipe.batch)
        stops = {(n + 1) * len(steps) // recipe.evaluations - 1 for n in range(recipe.evaluations)}
        for place, step in enumerate(steps):
            share = (epoch + place / len(steps)) / recipe.epochs
            rate = min(1.0, (epoch * len(steps) + place + 1) / 20) * max(0.02, 1 - share)
            for settings in optimiser.param_groups:
                settings["lr"] = settings["peak"] * rate
            optimiser.zero_grad(set_to_none=True)
            size = sum(len(group) for group in step)
            for group in step:
                targets = torch.tensor([case.target for case in group], device=reader.policy.device)
                loss = losses_of(reader.logprobs(group), targets, recipe.smoothing).sum() / size
                loss.backward()  # type: ignore[no-untyped-call]
                total_loss += float(loss.detach()) * size
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            seen += size
            if place % 20 == 19:
                progress(f"epoch {epoch + 1}, step {place + 1} of {len(steps)}, loss {total_loss / seen:.3f}")
            if place in stops:
                score = evaluate() if evaluate is not None else 0.0
                history.append(
                    {
                        "epoch": round(epoch + (place + 1) / len(steps), 2),
                        "loss": round(total_loss / seen, 4),
                        "dev": round(score, 4),
                        "seconds": round(time.perf_counter() - started, 1),
                    }
                )
                progress(json.dumps(history[-1]))
                seen, total_loss = 0, 0.0
                if keep is not None and score > best:
                    best = score
                    keep()
    return history


def _steps(groups: Sequence[list[Case]], batch: int) -> list[list[list[Case]]]:
    """Micro-batches put together, in order, to optimiser steps of at least `batch` cases."""
    steps: list[list[list[Case]]] = [[]]
    for group in groups:
        if sum(len(held) for held in steps[-1]) >= batch:
            steps.append([])
        steps[-1].append(group)
    return steps if steps[-1] else steps[:-1]


def accuracy(reader: Reader, cases: Sequence[Case], micro_tokens: int) -> tuple[float, float]:
    """(share right, mean log-probability of the right answer in nats)."""
    right = total = 0.0
    for group in reader.groups(cases, micro_tokens):
        logprobs = reader.logprobs(group).detach()  # With gradients on: the blocks are compiled once, not twice.
        targets = torch.tensor([case.target for case in group], device=logprobs.device)
        right += float((logprobs.argmax(1) == targets).sum())
        total += float(logprobs.gather(1, targets[:, None]).sum())
    return right / len(cases), total / len(cases)


def main() -> None:
    parser = argparse.ArgumentParser(prog="claw_trainer.judge_adapter", description=__doc__)
    parser.add_argument("out", type=Path, help="the GGUF LoRA to write; its record is written beside it as .json")
    parser.add_argument("--model", type=Path, help="base model, a GGUF file; the embedded one unless given")
    parser.add_argument("--follows", type=Path, help="JSON lines of the second question: hint, reply, follows, split")
    parser.add_argument("--start", type=Path, help="go on from this: a PEFT folder, whose record is beside it as .json")
    parser.add_argument("--peft", type=Path, help="also keep what is best as a PEFT folder, to go on from another time")
    for name, value in Recipe().__dict__.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32", help="how the base is held")
    parser.add_argument("--compile", action="store_true", help="let torch compile the model; needs a C++ compiler")
    parser.add_argument("--threads", type=int, default=0, help="torch's threads; 0: as many as it likes")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    recipe = Recipe(**{name: getattr(options, name) for name in Recipe.__dataclass_fields__})

    from claw_local.engine.llama_cpp import LlamaCppEngine
    from claw_local.engine.models import embedded_model
    from claw_local.settings import ModelSettings

    from .weights import load_base

    model = options.model or embedded_model()
    if model is None:
        parser.error("no --model, and the embedded one is not installed")
    engine = LlamaCppEngine.open(model, ModelSettings(), cache_dir=None)
    told = [example for example in [*shipped("train"), *scored("train")] if example.next_role == "user"]
    held = [example for example in shipped("dev") if example.next_role == "user"]
    more = scored("dev")
    follows = [json.loads(line) for line in options.follows.read_text("utf-8").splitlines()] if options.follows else []

    def second(split: str) -> list[Case]:
        return [follows_case(engine, f["hint"], f["reply"], f["follows"]) for f in follows if f["split"] == split]

    second_train, second_dev = second("train"), second("dev")
    dev_cases = [verdict_case(engine, example) for example in held]
    more_cases = [verdict_case(engine, example) for example in more]

    def epoch_cases(epoch: int) -> list[Case]:
        dice = random.Random(recipe.seed * 1000 + epoch)
        alone = 1.0 if epoch < recipe.alone else NO_CONTEXT
        cases = [verdict_case(engine, example, dice=dice, alone=alone) for example in told]
        return cases + dice.sample(second_train, round(recipe.second * len(second_train)))

    base = load_base(model, precision=options.precision)
    policy = Policy(base, rank=recipe.rank, alpha=recipe.alpha, seed=recipe.seed, parent=options.start)
    reader = Reader(policy, compiled=options.compile)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.peft or Path(scratch) / "peft"
        measured: dict[str, Any] = {}

        def evaluate() -> float:
            share, likelihood = accuracy(reader, dev_cases, recipe.micro_tokens)
            measured.update(dev_accuracy=round(share, 4), dev_logprob=round(likelihood, 4))
            score = likelihood
            share, likelihood = accuracy(reader, more_cases, recipe.micro_tokens)
            measured.update(scored_accuracy=round(share, 4), scored_logprob=round(likelihood, 4))
            score += likelihood
            if second_dev:
                share, likelihood = accuracy(reader, second_dev, recipe.micro_tokens)
                measured.update(follows_accuracy=round(share, 4), follows_logprob=round(likelihood, 4))
                score += likelihood
            print(json.dumps(measured), flush=True)
            return score

        def keep() -> None:
            """Written at once: what is best so far is there, however the rest ends."""
            policy.save(folder)
            made = gguf.convert_lora(folder, model, Path(scratch) / "judge.gguf", precision="f16")
            shutil.copyfile(made, options.out)

        history = train(
            reader,
            epoch_cases,
            recipe,
            evaluate=evaluate,
            keep=keep,
            progress=lambda words: print(words, flush=True),
        )
    record = {
        "format": trained.FORMAT,
        "model": model.name,
        "model_sha256": engine.info.sha256,
        "recipe": recipe.__dict__,
        "precision": options.precision,
        "examples": {"train": len(told), "dev": len(held) + len(more), "follows_train": len(second_train)},
        "history": history,
        **({"began_with": json.loads(options.start.with_suffix(".json").read_text("utf-8"))} if options.start else {}),
    }
    options.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    engine.close()


if __name__ == "__main__":
    main()
