"""Rewards of policy and judge, by hand; and that more votes help exactly when the judge is better than chance."""

from __future__ import annotations

import numpy as np
import pytest

from claw_local.signals.joint import standardised, step_advantages, step_reward, vote_advantages


def test_a_step_is_rewarded_by_outcome_and_votes() -> None:
    assert step_reward(1, [1, 1, -1]) == pytest.approx(1 + 1 / 3)
    assert step_reward(-1, [-1, -1]) == -2.0
    assert step_reward(-1, [1, 0], lam=0.5) == pytest.approx(-0.75)
    assert step_reward(1, []) == 1.0


def test_what_is_no_outcome_or_no_vote_is_refused() -> None:
    for outcome, votes in ((0, [1]), (1, [2]), (2, [])):
        with pytest.raises(ValueError, match="are wanted"):
            step_reward(outcome, votes)


def test_a_vote_that_agrees_with_the_end_is_reinforced() -> None:
    votes = [1, 1, -1, 1]
    good = vote_advantages(step_reward(1, votes), votes)
    assert good == pytest.approx([1 / 3**0.5, 1 / 3**0.5, -(3**0.5), 1 / 3**0.5])
    bad = vote_advantages(step_reward(-1, votes), votes)
    assert bad == pytest.approx([-x for x in good])
    assert vote_advantages(2.0, [1, 1, 1]) == [0.0, 0.0, 0.0]


def test_advantages_are_standardised_at_the_same_step() -> None:
    found = step_advantages([[2.0, 1.0, 0.5], [0.0, 1.0], [1.0]])
    root = (2 / 3) ** 0.5
    assert [row[0] for row in found] == pytest.approx([1 / root, -1 / root, 0.0])
    assert [found[0][1], found[1][1]] == [0.0, 0.0], "all-equal rewards do not divide by zero"
    assert found[0][2] == 0.5, "a step that only one trajectory has keeps its plain reward"
    assert step_advantages([]) == []
    assert step_advantages([[-1.0]]) == [[-1.0]]


def test_standardised_values_have_no_mean_and_unit_spread() -> None:
    values = standardised([1.0, 2.0, 4.0])
    assert np.mean(values) == pytest.approx(0.0, abs=1e-12) and np.std(values) == pytest.approx(1.0)
    assert standardised([]) == []


@pytest.mark.parametrize(
    ("p_good", "p_bad"), [(0.7, 0.6), (0.9, 0.3), (0.55, 0.55), (0.4, 0.4), (0.6, 0.2), (0.3, 0.6)]
)
def test_more_votes_help_exactly_when_the_judge_beats_chance(p_good: float, p_bad: float) -> None:
    """p+ = P(vote +1 | good step), p- = P(vote -1 | bad step). The rewards of a good and a bad step with the same
    outcome are told apart by the votes' mean alone: rightly the more often, the more votes, exactly if p+ + p- > 1.

    Simulated 40,000 times for each number of votes; a tie counts half.
    """
    dice = np.random.default_rng(0)

    def told_apart(m: int) -> float:
        good = np.where(dice.random((40_000, m)) < p_good, 1, -1)
        bad = np.where(dice.random((40_000, m)) < p_bad, -1, 1)
        rewards = [
            1 + votes.mean(1) for votes in (good, bad)
        ]  # λ = 1 and outcome +1: what `step_reward` gives, all at once
        assert rewards[0][0] == pytest.approx(step_reward(1, good[0].tolist()))
        return float((rewards[0] > rewards[1]).mean() + 0.5 * (rewards[0] == rewards[1]).mean())

    accuracies = [told_apart(m) for m in (1, 5, 25)]
    if p_good + p_bad > 1:
        assert accuracies[0] < accuracies[1] < accuracies[2]
    else:
        assert accuracies[0] > accuracies[1] > accuracies[2]
