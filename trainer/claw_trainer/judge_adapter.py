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
from claw_local.judge.examples import Example, shipped

from .batches import pack, split_by_tokens
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
    learning_rate: float = 3e-4
    epochs: int = 6
    batch: int = 16
    smoothing: float = 0.05
    micro_tokens: int = 1024
    seed: int = 0


@dataclass(frozen=True)
class Case:
    """One prompt [P] with the words it may be answered by [C] (one token each) and the index of the right one."""

    prompt_ids: tuple[int, ...]
    choices: tuple[int, ...]
    target: int


def verdict_case(engine: Engine, example: Example, *, dice: random.Random | None = None) -> Case:
    """An example of the first question; with dice, one of its many ways of being said."""
    question, reply, message = example.question, example.reply, example.next
    if dice is not None:
        if dice.random() < NO_CONTEXT:
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


def choice_logprobs(policy: Policy, cases: Sequence[Case]) -> torch.Tensor:
    """[B, C] log-probabilities of each case's choices among themselves. All cases have the same number of choices."""
    packed = pack([(case.prompt_ids, case.choices[:1]) for case in cases], policy.device)
    logits = policy.logits(policy.hidden(packed))  # [B, V]
    chosen = logits.gather(1, torch.tensor([case.choices for case in cases], device=logits.device))  # [B, C]
    return chosen.log_softmax(1)


def losses_of(logprobs: torch.Tensor, targets: torch.Tensor, smoothing: float) -> torch.Tensor:
    """[B] cross-entropy in nats, the right answer's share being 1 - smoothing, the rest spread evenly over all.

    Args:
        logprobs: [B, C]
        targets: [B] indices.
    """
    right = logprobs.gather(1, targets[:, None])[:, 0]  # [B]
    return -((1 - smoothing) * right + smoothing * logprobs.mean(1))


def train(
    policy: Policy,
    epoch_cases: Callable[[int], Sequence[Case]],
    recipe: Recipe,
    *,
    evaluate: Callable[[], float] | None = None,
    keep: Callable[[], object] | None = None,
    progress: Progress = lambda words: None,
) -> list[dict[str, float]]:
    """Train the policy's LoRA; `keep` is called after each epoch whose `evaluate` is the best so far.

    Args:
        epoch_cases: the cases of an epoch, by its number.
    """
    dice = random.Random(recipe.seed)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    total = sum(len(epoch_cases(n)) for n in range(recipe.epochs)) // recipe.batch
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / 10) * max(0.05, 1 - step / max(1, total))
    )
    history: list[dict[str, float]] = []
    best = float("-inf")
    for epoch in range(recipe.epochs):
        cases = list(epoch_cases(epoch))
        dice.shuffle(cases)
        started, total_loss = time.perf_counter(), 0.0
        for start in range(0, len(cases), recipe.batch):
            batch = sorted(
                cases[start : start + recipe.batch], key=lambda case: (len(case.choices), len(case.prompt_ids))
            )
            optimiser.zero_grad(set_to_none=True)
            for group in _groups(batch, recipe.micro_tokens):
                targets = torch.tensor([case.target for case in group], device=policy.device)
                loss = losses_of(choice_logprobs(policy, group), targets, recipe.smoothing).sum() / len(batch)
                loss.backward()  # type: ignore[no-untyped-call]
                total_loss += float(loss.detach()) * len(batch)
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        score = evaluate() if evaluate is not None else 0.0
        history.append(
            {
                "epoch": epoch + 1,
                "loss": round(total_loss / len(cases), 4),
                "dev": round(score, 4),
                "seconds": round(time.perf_counter() - started, 1),
            }
        )
        progress(json.dumps(history[-1]))
        if keep is not None and score > best:
            best = score
            keep()
    return history


def _groups(cases: Sequence[Case], most: int) -> list[list[Case]]:
    """Micro-batches of at most `most` tokens, each with one number of choices."""
    found: list[list[Case]] = []
    for count in sorted({len(case.choices) for case in cases}):
        alike = [case for case in cases if len(case.choices) == count]
        for group in split_by_tokens([len(case.prompt_ids) for case in alike], most):
            found.append([alike[n] for n in group])
    return found


@torch.no_grad()
def accuracy(policy: Policy, cases: Sequence[Case], micro_tokens: int) -> tuple[float, float]:
    """(share right, mean log-probability of the right answer in nats)."""
    right = total = 0.0
    for group in _groups(sorted(cases, key=lambda case: len(case.prompt_ids)), micro_tokens):
        logprobs = choice_logprobs(policy, group)
        targets = torch.tensor([case.target for case in group], device=logprobs.device)
        right += float((logprobs.argmax(1) == targets).sum())
        total += float(logprobs.gather(1, targets[:, None]).sum())
    return right / len(cases), total / len(cases)


def main() -> None:
    parser = argparse.ArgumentParser(prog="claw_trainer.judge_adapter", description=__doc__)
    parser.add_argument("out", type=Path, help="the GGUF LoRA to write; its record is written beside it as .json")
    parser.add_argument("--model", type=Path, help="base model, a GGUF file; the embedded one unless given")
    parser.add_argument("--follows", type=Path, help="JSON lines of the second question: hint, reply, follows, split")
    for name, value in Recipe().__dict__.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    options = parser.parse_args()
    recipe = Recipe(**{name: getattr(options, name) for name in Recipe.__dataclass_fields__})

    from claw_local.engine.llama_cpp import LlamaCppEngine
    from claw_local.engine.models import embedded_model
    from claw_local.settings import ModelSettings

    from .weights import load_base

    model = options.model or embedded_model()
    if model is None:
        parser.error("no --model, and the embedded one is not installed")
    engine = LlamaCppEngine.open(model, ModelSettings(), cache_dir=None)
    told = [example for example in shipped("train") if example.next_role == "user"]
    held = [example for example in shipped("dev") if example.next_role == "user"]
    follows = [json.loads(line) for line in options.follows.read_text("utf-8").splitlines()] if options.follows else []

    def second(split: str) -> list[Case]:
        return [follows_case(engine, f["hint"], f["reply"], f["follows"]) for f in follows if f["split"] == split]

    second_train, second_dev = second("train"), second("dev")
    dev_cases = [verdict_case(engine, example) for example in held]

    def epoch_cases(epoch: int) -> list[Case]:
        dice = random.Random(recipe.seed * 1000 + epoch)
        return [verdict_case(engine, example, dice=dice) for example in told] + second_train

    policy = Policy(load_base(model), rank=recipe.rank, alpha=recipe.alpha, seed=recipe.seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "peft"
        measured: dict[str, Any] = {}

        def evaluate() -> float:
            share, likelihood = accuracy(policy, dev_cases, recipe.micro_tokens)
            measured.update(dev_accuracy=round(share, 4), dev_logprob=round(likelihood, 4))
            score = likelihood
            if second_dev:
                share, likelihood = accuracy(policy, second_dev, recipe.micro_tokens)
                measured.update(follows_accuracy=round(share, 4), follows_logprob=round(likelihood, 4))
                score += likelihood
            print(json.dumps(measured), flush=True)
            return score

        history = train(
            policy,
            epoch_cases,
            recipe,
            evaluate=evaluate,
            keep=lambda: policy.save(folder),
            progress=lambda words: print(words, flush=True),
        )
        made = gguf.convert_lora(folder, model, Path(scratch) / "judge.gguf", precision="f16")
        shutil.copyfile(made, options.out)
    record = {
        "format": trained.FORMAT,
        "model": model.name,
        "model_sha256": engine.info.sha256,
        "recipe": recipe.__dict__,
        "examples": {"train": len(told), "dev": len(held), "follows_train": len(second_train)},
        "history": history,
    }
    options.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    engine.close()


if __name__ == "__main__":
    main()
