"""Learning the policy and the judge together: who is rewarded with what. Numbers in, numbers out.

Source: RLAnything, as DESIGN §4 states it. O ∈ {-1, +1} is the outcome the person made known, S_j ∈ {-1, +1} are the m
votes of the judge on one step, λ weighs them: R = O + (λ/m) Σ_j S_j rewards the step, and R · S_j the vote. A vote that
agrees with what came of it in the end is reinforced, one that does not is discouraged.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev


def step_reward(outcome: int, votes: Sequence[int], lam: float = 1.0) -> float:
    """R = O + (λ/m) Σ_j S_j. In [-1 - λ, 1 + λ]; without votes, O alone.

    Raises:
        ValueError: the outcome is not -1 or +1, or a vote is not -1, 0 (an abstention) or +1.
    """
    if outcome not in (-1, 1) or any(vote not in (-1, 0, 1) for vote in votes):
        raise ValueError(f"outcome -1 or 1 and votes -1, 0 or 1 are wanted, not {outcome} and {list(votes)}")
    return outcome + (lam * fmean(votes) if votes else 0.0)


def vote_advantages(reward: float, votes: Sequence[int]) -> list[float]:
    """[m] R · S_j, standardised over the m votes of one step. All zero where they agree: nothing tells them apart."""
    rewards = [reward * vote for vote in votes]
    return standardised(rewards)


def step_advantages(trajectories: Sequence[Sequence[float]]) -> list[list[float]]:
    """Rewards of each step of each trajectory, standardised across trajectories at the same step index.

    A step index that only one trajectory has keeps its plain reward: there is nothing to hold it against.
    """
    result = [list(rewards) for rewards in trajectories]
    for index in range(max(map(len, trajectories), default=0)):
        having = [n for n, rewards in enumerate(trajectories) if len(rewards) > index]
        if len(having) > 1:
            column = standardised([trajectories[n][index] for n in having])
            for n, value in zip(having, column, strict=True):
                result[n][index] = value
    return result


def standardised(values: Sequence[float]) -> list[float]:
    """(v - mean) / standard deviation; all zero where they are all equal."""
    if not values:
        return []
    mean, spread = fmean(values), pstdev(values)
    return [(value - mean) / spread if spread > 1e-12 else 0.0 for value in values]
