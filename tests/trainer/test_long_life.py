"""Many runs, each going on from the adapter before it, with wishes that turn: what holds it near the base.

On a tiny random model, with the trainer's own steps; `benchmarks/drift.py` does it on the embedded model.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from claw_trainer.batches import Sample
from claw_trainer.policy import Policy
from claw_trainer.step import Objective, Trainer
from claw_trainer.weights import load_base

RUNS = 20
TURNS = [((3, 1, 4), (1, 5, 9, 2)), ((2, 7, 1), (8, 2, 8))]


def wanted(run: int) -> list[Sample]:
    """Each run rewards what the one before it punished."""
    sign = 1.0 if run % 2 else -1.0
    return [Sample(*turn, score=sign * (1 if n else -1)) for n, turn in enumerate(TURNS)]


def a_life(model: Path, folder: Path, *, most: float, kl_base: float) -> list[tuple[float, float]]:
    """(norm, KL to the base on the turns in nats a token) after each run."""
    parent, seen = None, []
    for run in range(RUNS):
        policy = Policy(load_base(model, exact=True), rank=4, alpha=8, parent=parent)
        trainer = Trainer(policy, Objective(kl_base=kl_base), learning_rate=3e-2, max_norm=most)
        for _ in range(2):
            trainer.step(wanted(run))
        parent = policy.save(folder / f"run-{run}")
        ours = torch.cat(policy.response_logprobs("policy", TURNS))
        base = torch.cat(policy.response_logprobs("base", TURNS))
        seen.append((policy.norm(), float((base - ours).expm1().sub(base - ours).mean())))
    return seen


@pytest.fixture(scope="module")
def bounded(tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> list[tuple[float, float]]:
    return a_life(tiny_models["llama"], tmp_path_factory.mktemp("bounded"), most=1.0, kl_base=0.02)


def test_its_size_stays_within_the_bound_however_long_it_lives(bounded: list[tuple[float, float]]) -> None:
    assert max(norm for norm, _ in bounded) <= 1.0 + 1e-4
    assert bounded[-1][0] > 0.5, "it did learn, up to the bound"


def test_the_last_run_is_no_further_from_the_base_than_the_early_ones(bounded: list[tuple[float, float]]) -> None:
    early = max(kl for _, kl in bounded[:4])
    late = max(kl for _, kl in bounded[-4:])
    assert late <= 1.5 * early + 0.05


def test_without_the_bound_it_grows(
    bounded: list[tuple[float, float]], tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    free = a_life(tiny_models["llama"], tmp_path, most=1e9, kl_base=0.0)
    assert free[-1][0] > 1.5 * bounded[-1][0]
