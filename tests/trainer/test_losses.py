"""Every loss against arithmetic written out here, and against a second way to compute it."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from claw_local.errors import LearnError
from claw_trainer import losses


def log(*values: float) -> torch.Tensor:
    return torch.tensor(values).log()


# normalisation


def test_token_weights_are_a_mean_over_tokens_then_over_samples() -> None:
    # two samples of 2 and 4 tokens: 1/2 · 1/2 = 0.25 and 1/2 · 1/4 = 0.125
    assert losses.token_weights([2, 4]).tolist() == [0.25, 0.25, 0.125, 0.125, 0.125, 0.125]


def test_token_weights_follow_the_samples_weights() -> None:
    # shares 3/4 and 1/4; 3/4 / 3 = 0.25 for each of 3 tokens, 1/4 / 1 = 0.25
    assert losses.token_weights([3, 1], [3.0, 1.0]).tolist() == [0.25] * 4
    assert losses.token_weights([2], [0.0]).tolist() == [0.0, 0.0]


def test_masked_mean_and_token_weights_are_the_same_normalisation() -> None:
    values = torch.tensor([[1.0, 2.0, math.nan], [3.0, 5.0, 10.0]])
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    # (1 + 2) / 2 = 1.5; (3 + 5 + 10) / 3 = 6; (1.5 + 6) / 2 = 3.75
    assert losses.masked_mean(values, mask).item() == 3.75
    packed = torch.tensor([1.0, 2.0, 3.0, 5.0, 10.0])
    assert (packed * losses.token_weights([2, 3])).sum().item() == pytest.approx(3.75)


def test_masked_mean_leaves_out_rows_without_tokens_and_gives_no_gradient_to_masked_ones() -> None:
    values = torch.tensor([[2.0, 4.0], [7.0, 8.0]], requires_grad=True)
    mean = losses.masked_mean(values, torch.tensor([[1, 1], [0, 0]]))
    mean.backward()  # type: ignore[no-untyped-call]
    assert mean.item() == 3.0
    assert values.grad is not None
    assert values.grad.tolist() == [[0.5, 0.5], [0.0, 0.0]]
    assert losses.masked_mean(values, torch.zeros(2, 2)).item() == 0.0


def test_masked_mean_counts_a_row_of_one_token_as_any_other() -> None:
    # 4 / 1 = 4; (6 + 10) / 2 = 8; (4 + 8) / 2 = 6
    values, mask = torch.tensor([[4.0, 9.0], [6.0, 10.0]]), torch.tensor([[1, 0], [1, 1]])
    assert losses.masked_mean(values, mask).item() == 6.0


# advantages


def test_binary_rl_gives_every_token_its_responses_reward_unnormalised() -> None:
    assert losses.binary_rl_advantages([1.0, -1.0], [2, 3]).tolist() == [1, 1, -1, -1, -1]
    assert losses.binary_rl_advantages([1.0, 1.0], [1, 1]).tolist() == [1, 1]
    assert losses.binary_rl_advantages([1, -1], [1, 2]).dtype is torch.float32, "whole numbers are rewards too"


def test_opd_advantages_are_the_teachers_log_ratio_without_gradient() -> None:
    old = log(0.25, 0.5).requires_grad_()
    advantages = losses.opd_advantages(log(0.5, 0.125), old)
    # ln(0.5 / 0.25) = ln 2; ln(0.125 / 0.5) = -2 ln 2
    assert advantages.tolist() == pytest.approx([math.log(2), -2 * math.log(2)])
    assert not advantages.requires_grad


# importance weights


def test_importance_weights_are_the_capped_ratio() -> None:
    old, behaviour = log(0.2, 0.5, 0.9, 0.3), log(0.4, 0.5, 0.3, 1e-30)
    # 0.2 / 0.4 = 0.5; 0.5 / 0.5 = 1; 0.9 / 0.3 = 3, capped at 2; a ratio too large for a float: 2
    assert losses.importance_weights(old, behaviour, 2.0).tolist() == pytest.approx([0.5, 1.0, 2.0, 2.0])
    assert not losses.importance_weights(old.requires_grad_(), behaviour, 2.0).requires_grad


@given(st.floats(-30, 0), st.floats(-30, 0), st.floats(0.5, 5))
def test_importance_weights_never_exceed_their_cap(old: float, behaviour: float, cap: float) -> None:
    weight = losses.importance_weights(torch.tensor(old), torch.tensor(behaviour), cap).item()
    assert 0 < weight <= cap * (1 + 1e-6)
    assert weight == pytest.approx(min(math.exp(old - behaviour), cap), rel=1e-4)


# PPO clip


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.0, 2.0, -2.0, -2.0),  # min(1·2, 1·2); d(-ρA)/d(log π) = -ρA
        (1.5, 1.0, -1.28, 0.0),  # min(1.5, 1.28): clipped above, no gradient
        (0.5, 1.0, -0.5, -0.5),  # min(0.5, 0.8): a good token that became rarer keeps its gradient
        (0.5, -1.0, 0.8, 0.0),  # min(-0.5, -0.8): clipped below, no gradient
        (1.5, -1.0, 1.5, 1.5),  # min(-1.5, -1.28): a bad token that became likelier keeps its full loss
        (1.0, 0.0, 0.0, 0.0),
    ],
)
def test_ppo_clip_by_hand(ratio: float, advantage: float, loss: float, slope: float) -> None:
    logprob = torch.tensor([math.log(ratio * 0.4)], requires_grad=True)
    found = losses.ppo_clip(logprob, log(0.4), torch.tensor([advantage]), clip_low=0.2, clip_high=0.28)
    found.sum().backward()  # type: ignore[no-untyped-call]
    assert logprob.grad is not None
    assert found.item() == pytest.approx(loss, abs=1e-5)
    assert logprob.grad.item() == pytest.approx(slope, abs=1e-5)


@given(st.floats(-2, 2), st.floats(-3, 3))
def test_ppo_clip_equals_a_literal_reading_of_the_paper(log_ratio: float, advantage: float) -> None:
    ratio = math.exp(log_ratio)
    clipped = 0.8 if ratio < 0.8 else 1.28 if ratio > 1.28 else ratio
    expected = -min(ratio * advantage, clipped * advantage)
    found = losses.ppo_clip(
        torch.tensor(log_ratio - 1.0), torch.tensor(-1.0), torch.tensor(advantage), clip_low=0.2, clip_high=0.28
    )
    assert found.item() == pytest.approx(expected, rel=1e-4, abs=1e-5)


# KL to the base


def test_low_variance_kl_by_hand() -> None:
    # q = π_base / π_θ = 2: 2 - ln 2 - 1 = 1 - ln 2; q = 0.5: 0.5 + ln 2 - 1 = ln 2 - 0.5; q = 1: 0
    found = losses.low_variance_kl(log(0.25, 0.8, 0.3), log(0.5, 0.4, 0.3))
    assert found.tolist() == pytest.approx([1 - math.log(2), math.log(2) - 0.5, 0.0], abs=1e-6)


def test_low_variance_kl_averages_to_the_kl_itself() -> None:
    policy, base = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.5, 0.3])
    expected = torch.distributions.kl_divergence(
        torch.distributions.Categorical(policy), torch.distributions.Categorical(base)
    )
    assert (policy * losses.low_variance_kl(policy.log(), base.log())).sum().item() == pytest.approx(expected.item())


@given(st.floats(-20, 0), st.floats(-20, 0))
def test_low_variance_kl_is_never_negative(policy: float, base: float) -> None:
    assert losses.low_variance_kl(torch.tensor(policy), torch.tensor(base)).item() >= 0


# top-K OPD


def test_topk_reverse_kl_by_hand() -> None:
    policy, teacher = log(0.5, 0.25), log(0.25, 0.25)
    # 0.5 ln(0.5/0.25) + 0.25 ln(0.25/0.25) + tail 0.25 ln(0.25/0.5) = 0.5 ln 2 - 0.25 ln 2 = 0.25 ln 2
    assert losses.topk_reverse_kl(policy, teacher).item() == pytest.approx(0.25 * math.log(2), abs=1e-6)


def distributions(size: int, reach: float) -> st.SearchStrategy[torch.Tensor]:
    """[size] log-probabilities of some distribution, in float64; logits from -reach to reach."""
    return st.lists(st.floats(-reach, reach), min_size=size, max_size=size).map(
        lambda logits: torch.tensor(logits, dtype=torch.float64).log_softmax(0)
    )


def binned(logprobs: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """[K + 1] probabilities of the chosen tokens and of all others together, counted one by one."""
    chosen = logprobs.double().exp()[ids]
    rest = sum(p for index, p in enumerate(logprobs.double().exp()) if index not in ids.tolist())
    return torch.cat([chosen, torch.as_tensor(rest, dtype=torch.float64).reshape(1)])


@settings(max_examples=60)
@given(distributions(9, 5), distributions(9, 5), st.integers(1, 8))
def test_topk_reverse_kl_equals_torchs_kl_over_the_bins(policy: torch.Tensor, teacher: torch.Tensor, k: int) -> None:
    ids = teacher.topk(k).indices
    found = losses.topk_reverse_kl(policy[ids], teacher[ids]).item()
    p, q = binned(policy, ids), binned(teacher, ids)
    expected = torch.nn.functional.kl_div(q.log(), p.log(), reduction="sum", log_target=True).item()
    whole = torch.nn.functional.kl_div(teacher, policy, reduction="sum", log_target=True).item()
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert found <= whole + 1e-9


@given(distributions(9, 20), distributions(9, 20), st.integers(1, 8))
def test_topk_reverse_kl_is_never_negative_and_zero_where_both_agree(
    policy: torch.Tensor, teacher: torch.Tensor, k: int
) -> None:
    ids = teacher.topk(k).indices
    policy, teacher = policy.float()[ids], teacher.float()[ids]
    assert losses.topk_reverse_kl(policy, teacher).item() >= -1e-5
    assert losses.topk_reverse_kl(teacher, teacher).item() == 0.0


@given(distributions(5, 3), distributions(5, 3))
def test_topk_reverse_kl_is_above_zero_where_the_bins_differ(policy: torch.Tensor, teacher: torch.Tensor) -> None:
    ids = teacher.topk(3).indices
    difference = (binned(policy, ids) - binned(teacher, ids)).abs().sum().item()
    # Pinsker's inequality: KL >= (Σ |p - q|)² / 2
    assert losses.topk_reverse_kl(policy[ids], teacher[ids]).item() >= difference**2 / 2 - 1e-9


def test_topk_reverse_kl_pulls_the_policy_to_the_teacher() -> None:
    logits = torch.zeros(1, 6, requires_grad=True)
    teacher = torch.tensor([[4.0, 2.0, 0.0, 0.0, 0.0, 0.0]]).log_softmax(1)
    ids = teacher.topk(2).indices
    optimiser = torch.optim.Adam([logits], lr=0.1)
    for _ in range(300):
        optimiser.zero_grad()
        losses.topk_reverse_kl(logits.log_softmax(1).gather(1, ids), teacher.gather(1, ids)).sum().backward()
        optimiser.step()
    assert torch.allclose(logits.log_softmax(1).gather(1, ids), teacher.gather(1, ids), atol=0.02)


def test_topk_reverse_kl_stays_finite_where_the_teacher_is_certain() -> None:
    policy = torch.tensor([[9.0, 0.0, -90.0]], requires_grad=True)
    teacher = torch.tensor([[300.0, 0.0, 0.0]]).log_softmax(1)
    loss = losses.topk_reverse_kl(policy.log_softmax(1)[:, :2], teacher[:, :2]).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert policy.grad is not None
    assert torch.isfinite(loss)
    assert torch.isfinite(policy.grad).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_named(bad: float) -> None:
    with pytest.raises(LearnError) as raised:
        losses.require_finite("the OPD loss", torch.tensor([0.0, bad]))
    assert str(raised.value) == (
        "Learning stopped: the OPD loss is not finite (a division by zero or an overflow); the step was not applied. "
        "Lower learning.learning_rate in the settings, then learn again."
    )
