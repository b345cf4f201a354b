"""Makes the judge's model of wordings: `python -m claw_trainer.judge_phrases OUT.npz`. Reads top to bottom.

A linear model (`claw_local.judge.phrases`) by the labels' cross-entropy with AdamW, on the shipped train split and on
what of `scored.jsonl` is for training; only features that at least `--least` messages have. Its weights are kept in
whole steps of an eight-bit number. It prints how right it is on the dev split
and on what of `scored.jsonl` is held back.

Left out on purpose: any use of the test split.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from claw_local.judge.calibration import SCORES, VERDICTS
from claw_local.judge.evaluation import auc_of
from claw_local.judge.examples import Example, scored, shipped
from claw_local.judge.phrases import Keys, Phrases, features, known

Rows = list[npt.NDArray[np.intp]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--least", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=0.02)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # The same numbers each time.
    taught = [example for example in [*shipped("train"), *scored("train")] if example.next_role == "user"]
    made = train(
        taught,
        least=options.least,
        epochs=options.epochs,
        learning_rate=options.learning_rate,
        batch=options.batch,
        seed=options.seed,
    )
    write(made, options.out)
    for name, examples in (("dev", shipped("dev")), ("scored", scored("dev"))):
        print(json.dumps({"examples": name, **measure(made, examples)}))


def train(
    examples: Sequence[Example], *, least: int, epochs: int, learning_rate: float, batch: int, seed: int
) -> Phrases:
    """A model of the wordings of labelled messages.

    Args:
        least: in how many messages a feature must be.
        learning_rate: at the beginning; it falls to nothing.
        batch: messages a step.
    """
    found = [features(example.question, example.reply, example.next) for example in examples]
    keys = common(found, least)
    rows = [known(keys, one) for one in found]
    labels = torch.tensor([_label(example) for example in examples])
    table = torch.nn.EmbeddingBag(len(keys), len(VERDICTS), mode="sum")
    torch.nn.init.zeros_(table.weight)
    bias = torch.zeros(len(VERDICTS), requires_grad=True)
    optimiser = torch.optim.AdamW([table.weight, bias], lr=learning_rate, weight_decay=0.0)
    random = np.random.default_rng(seed)
    usable = np.array([number for number, row in enumerate(rows) if len(row)])
    steps = epochs * -(-len(usable) // batch)
    step = 0
    for _ in range(epochs):
        order = random.permutation(usable)
        for start in range(0, len(order), batch):
            for group in optimiser.param_groups:
                group["lr"] = learning_rate * (1 - step / steps)
            chosen = order[start : start + batch]
            logits = table(*_bag([rows[number] for number in chosen])) + bias
            loss = torch.nn.functional.cross_entropy(logits, labels[torch.from_numpy(chosen)])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            step += 1
    weights = table.weight.detach().numpy()
    width = float(np.abs(weights).max()) / 127
    return Phrases(keys, np.rint(weights / width).astype(np.int8), width, bias.detach().numpy().astype(np.float64))


def common(found: Sequence[Keys], least: int) -> Keys:
    """The features that at least so many messages have, ascending."""
    keys, counts = np.unique(np.concatenate(found), return_counts=True)
    result: Keys = keys[counts >= least]
    return result


def _label(example: Example) -> int:
    return next(place for place, verdict in enumerate(VERDICTS) if SCORES[verdict] == example.score)


def _bag(rows: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features, where each message's begin, and their weights: a long message counts no more than a short one."""
    lengths = np.array([len(row) for row in rows])
    weights = np.repeat(1 / np.sqrt(lengths), lengths).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return torch.from_numpy(np.concatenate(rows)), torch.from_numpy(starts), torch.from_numpy(weights)


def write(made: Phrases, path: Path) -> None:
    """Write it as `claw_local.judge.phrases.shipped` reads it."""
    with path.open("wb") as file:
        np.savez_compressed(
            file, keys=made.keys, weights=made.weights, step=np.float32(made.step), bias=made.bias.astype(np.float32)
        )


def measure(made: Phrases, examples: Sequence[Example]) -> dict[str, float]:
    """Accuracy, and how often a good message ranks above a bad one, by wording alone."""
    people = [example for example in examples if example.next_role == "user"]
    said = np.array([made.evidence(example.question, example.reply, example.next) for example in people])
    labels = np.array([_label(example) for example in people])
    odds = said[:, 0] - said[:, 2]
    ranked = auc_of(odds[labels == 0].tolist(), odds[labels == 2].tolist())
    return {
        "messages": len(people),
        "accuracy": round(float((said.argmax(axis=1) == labels).mean()), 3),
        "auc": round(ranked or 0.0, 3),
    }


if __name__ == "__main__":
    main()
