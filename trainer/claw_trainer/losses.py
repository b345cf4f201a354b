"""What is minimised, term by term. It must never know about models, samples or the optimiser.

Every function works token by token on tensors of any common shape, [...] below, so padded [B, T] and packed [R] batches
use the same formulas. x is the prompt, y the response, h the hint; π_θ is the policy in training, π_old the policy
before this update, π_b what wrote y, π_T the teacher (the model without the new training, shown h), π_base the base.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from claw_local.errors import LearnError

LEAST_TAIL = 1e-6
"""Tail probabilities below this count as this: float32 cannot tell them from zero."""


def token_weights(lengths: Sequence[int], weights: Sequence[float] | None = None) -> torch.Tensor:
    """The weight of each token in a batch's loss: mean over a response's tokens, then mean over responses.

    w_t = (weight_i / Σ_j weight_j) / length_i for each token t of response i. So a long answer counts no more than a
    short one, and the loss does not depend on how a batch is cut into micro-batches.

    Args:
        lengths: [B] response tokens of each sample.
        weights: [B] relative weights of the samples; None means equal ones.

    Returns:
        [R] with R = Σ lengths; they sum to 1 (to 0 if every sample weighs nothing).
    """
    shares = torch.ones(len(lengths)) if weights is None else torch.tensor(weights, dtype=torch.float32)  # [B]
    shares = shares / shares.sum().clamp_min(torch.finfo(torch.float32).tiny)
    counts = torch.tensor(lengths)  # [B]
    return (shares / counts).repeat_interleave(counts)  # [R]


def masked_mean(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The same normalisation for padded batches: mean over each row's tokens, then over the rows that have any.

    Args:
        values: [B, T] one loss a token; what is masked out may be anything, also not finite.
        mask: [B, T] 1 at response tokens, 0 elsewhere.

    Returns:
        [] scalar; 0 if nothing is unmasked.
    """
    kept = torch.where(mask.bool(), values, torch.zeros_like(values))  # [B, T]
    counts = mask.sum(1)  # [B]
    rows = kept.sum(1) / counts.clamp_min(1)  # [B]
    return rows.sum() / (counts > 0).sum().clamp_min(1)  # []


def binary_rl_advantages(scores: Sequence[float], lengths: Sequence[int]) -> torch.Tensor:
    """Advantages of Binary RL (OpenClaw-RL, arXiv 2603.10165): A_t = r for every token of the response.

    They are not normalised over the batch: equal rewards still teach, and a batch of one does.

    Args:
        scores: [B] reward of each response.
        lengths: [B] tokens of each response.

    Returns:
        [R] with R = Σ lengths.
    """
    return torch.tensor(scores, dtype=torch.float32).repeat_interleave(torch.tensor(lengths))  # [R]


def opd_advantages(teacher_logprobs: torch.Tensor, old_logprobs: torch.Tensor) -> torch.Tensor:
    """Advantages of on-policy distillation, token level (OpenClaw-RL): A_t = log π_T(y_t | x, h) - log π_old(y_t | x).

    Args:
        teacher_logprobs, old_logprobs: [...] log-probabilities of the sampled tokens.

    Returns:
        [...] without gradient.
    """
    return (teacher_logprobs - old_logprobs).detach()  # [...]


def importance_weights(old_logprobs: torch.Tensor, behaviour_logprobs: torch.Tensor, cap: float) -> torch.Tensor:
    """Truncated importance weights min(π_old / π_b, C), token by token.

    They correct for the sampler (quantised, with temperature and top-p) not being the trainer's policy. The weight of
    a whole sequence, a product of these, collapses; the token-level one is biased but steady.

    Args:
        old_logprobs, behaviour_logprobs: [...] log-probabilities of the sampled tokens.
        cap: C.

    Returns:
        [...] in (0, C], without gradient.
    """
    # capped before exp, so that a token that the sampler thought impossible gives C and not infinity
    log_ratio = (old_logprobs - behaviour_logprobs).detach()  # [...]
    return log_ratio.clamp_max(math.log(cap)).exp()  # [...]


def ppo_clip(
    logprobs: torch.Tensor, old_logprobs: torch.Tensor, advantages: torch.Tensor, *, clip_low: float, clip_high: float
) -> torch.Tensor:
    """Clipped policy-gradient loss (PPO, arXiv 1707.06347, eq. 7), bounds apart (DAPO, arXiv 2503.14476, eq. 10).

    -min(ρ A, clip(ρ, 1 - clip_low, 1 + clip_high) A) with ρ = π_θ / π_old. The minimum is the pessimistic one: for
    A > 0 there is no gain beyond ρ = 1 + clip_high; for A < 0 none below ρ = 1 - clip_low, while a bad token that
    became likelier keeps its full loss.

    Args:
        logprobs: [...] log π_θ of the sampled tokens.
        old_logprobs: [...] log π_old; no gradient flows into them.
        advantages: [...]

    Returns:
        [...] loss of each token.
    """
    ratio = (logprobs - old_logprobs.detach()).exp()  # [...]
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)  # [...]
    return -torch.minimum(ratio * advantages, clipped * advantages)  # [...]


def low_variance_kl(logprobs: torch.Tensor, base_logprobs: torch.Tensor) -> torch.Tensor:
    """Estimate of KL(π_θ ‖ π_base) from the sampled tokens (k3: http://joschu.net/blog/kl-approx.html; GRPO,
    arXiv 2402.03300, eq. 4): q - log q - 1 with q = π_base / π_θ. Never negative, zero where both agree.

    Args:
        logprobs: [...] log π_θ of the sampled tokens.
        base_logprobs: [...] log π_base of them; no gradient flows into them.

    Returns:
        [...] in nats.
    """
    log_ratio = base_logprobs.detach() - logprobs  # [...]
    return torch.expm1(log_ratio) - log_ratio  # [...]


def topk_reverse_kl(policy_topk: torch.Tensor, teacher_topk: torch.Tensor) -> torch.Tensor:
    """On-policy distillation, top-K: reverse KL(π_θ ‖ π_T) over the teacher's K likeliest tokens plus one tail bin.

    Σ_k p_k log(p_k / q_k) + p_tail log(p_tail / q_tail), p the policy, q the teacher, tail = 1 - Σ_k. Merging the other
    tokens into one bin can only make a KL smaller (data-processing inequality), so this is a lower bound of the whole
    one, zero where both agree on the bins. (Reverse KL on the student's own samples: MiniLLM, arXiv 2306.08543; GKD,
    arXiv 2306.13649.)

    Args:
        policy_topk: [..., K] log π_θ of the teacher's K likeliest tokens, normalised over the whole vocabulary.
        teacher_topk: [..., K] log π_T of them; no gradient flows into them.

    Returns:
        [...] in nats.
    """
    teacher_topk = teacher_topk.detach()
    policy, teacher = policy_topk.exp(), teacher_topk.exp()  # [..., K]
    policy_tail = (1 - policy.sum(-1)).clamp_min(LEAST_TAIL)  # [...]
    teacher_tail = (1 - teacher.sum(-1)).clamp_min(LEAST_TAIL)  # [...]
    heads = (policy * (policy_topk - teacher_topk)).sum(-1)  # [...]
    return heads + policy_tail * (policy_tail.log() - teacher_tail.log())  # [...]


def require_finite(what: str, values: torch.Tensor) -> None:
    """Stop before something that is not a number reaches the weights.

    Raises:
        LearnError: some value is NaN or infinite.
    """
    if not torch.isfinite(values).all():
        raise LearnError(
            f"Learning stopped: {what} is not finite (a division by zero or an overflow); the step was not applied. "
            "Lower learning.learning_rate in the settings, then learn again."
        )
