"""One optimiser step over a batch of samples. It must never know about chats, rollouts, the store or the gate.

The batch is cut into micro-batches by tokens, and the response positions of a micro-batch into chunks of rows, so that
memory is bounded whatever the batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import torch

from claw_local.errors import LearnError

from . import losses
from .batches import Sample, pack, split_by_tokens
from .policy import CHUNK_ROWS, Policy
from .ranks import Alone, Ranks
from .references import References
from .rows import Rows, gather_rows

Method = Literal["combined", "opd", "opd-token", "binary-rl"]


@dataclass(frozen=True)
class Objective:
    """What is minimised: w_rl · Binary RL + w_opd · OPD + kl_base · KL(π_θ ‖ π_base).

    Attributes:
        method: combined = Binary RL and top-K OPD; opd = top-K OPD alone; opd-token = token-level OPD alone;
            binary-rl = Binary RL alone. The KL to the base belongs to all.
        top_k: K of top-K OPD.
        clip_low, clip_high: bounds of PPO's clip.
        importance_cap: C of the truncated importance weights. They apply to the policy-gradient terms (Binary RL and
            token-level OPD), whose advantages were earned under π_b.
        opd_only: share of its weight and of the learning rate for a sample that has a teacher but no score. Nothing
            tells whether such a step led anywhere, and whole ones swing.
    """

    method: Method = "combined"
    top_k: int = 50
    w_rl: float = 1.0
    w_opd: float = 1.0
    clip_low: float = 0.2
    clip_high: float = 0.28
    kl_base: float = 0.02
    importance_cap: float = 2.0
    opd_only: float = 1.0

    def share(self, sample: Sample) -> float:
        """How much of a whole step a sample is worth."""
        return self.opd_only if sample.score is None and sample.teacher_prompt_ids is not None else 1.0


@dataclass
class Sums:
    """Weighted sums over tokens of what a step reports."""

    total: dict[str, float] = field(default_factory=dict)
    weight: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, values: torch.Tensor, weights: torch.Tensor) -> None:
        self.total[name] = self.total.get(name, 0.0) + float((values.detach() * weights).sum())
        self.weight[name] = self.weight.get(name, 0.0) + float(weights.sum())

    def mean(self, name: str) -> float:
        """0 if nothing was added."""
        return self.total.get(name, 0.0) / (self.weight.get(name, 0.0) or 1.0)


def objective_loss(
    logits: torch.Tensor, rows: Rows, old_logprobs: torch.Tensor | None, objective: Objective, sums: Sums
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of some response tokens, as `Objective` says.

    Args:
        logits: [n, V] of the policy at the positions that predict them.
        rows: what else is known of them, n rows.
        old_logprobs: [n] log π_old; None means that π_old is the policy itself.
        objective: which terms, how weighted.
        sums: what is reported is added to it.

    Returns:
        [] loss, already weighted, so that the sum over all parts of a batch is the batch's loss; and
        [n] log π_θ of the tokens, without gradient.

    Raises:
        LearnError: a term is not finite; the message names it.
    """
    normaliser = logits.logsumexp(1, keepdim=True)  # [n, 1]
    logprobs = (logits.gather(1, rows.targets[:, None]) - normaliser)[:, 0]  # [n]
    old = logprobs.detach() if old_logprobs is None else old_logprobs  # [n]
    importance = losses.importance_weights(old, rows.behaviour, objective.importance_cap)  # [n]
    importance = torch.where(rows.sampled, importance, torch.ones_like(importance))  # [n]

    def policy_gradient(advantages: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        clipped = losses.ppo_clip(
            logprobs, old, advantages, clip_low=objective.clip_low, clip_high=objective.clip_high
        )  # [n]
        return (rows.weights * importance * clipped)[mask].sum()  # []

    loss = logits.new_zeros(())
    if objective.method in ("combined", "binary-rl"):
        rl = objective.w_rl * policy_gradient(rows.advantages, rows.scored)
        losses.require_finite("the Binary RL loss", rl)
        sums.add("rl_loss", rl, torch.ones(()))
        loss = loss + rl
    if rows.taught.any():
        chosen = logits.gather(1, rows.topk_ids) - normaliser  # [n, K]
        opd_kl = losses.topk_reverse_kl(chosen[rows.taught], rows.topk[rows.taught])  # [taught]
        sums.add("opd_kl", opd_kl, rows.weights[rows.taught])
        if objective.method in ("combined", "opd"):
            opd = objective.w_opd * (rows.weights[rows.taught] * opd_kl).sum()
        elif objective.method == "opd-token":
            opd = objective.w_opd * policy_gradient(losses.opd_advantages(rows.teacher, old), rows.taught)
        else:
            opd = logits.new_zeros(())
        losses.require_finite("the OPD loss", opd)
        sums.add("opd_loss", opd, torch.ones(()))
        loss = loss + opd
    kl = losses.low_variance_kl(logprobs, rows.base)  # [n]
    weighted_kl = (rows.weights * kl).sum()
    losses.require_finite("the KL to the base model", weighted_kl)
    loss = loss + objective.kl_base * weighted_kl
    ratio = (logprobs.detach() - old).exp()  # [n]
    beyond = (ratio < 1 - objective.clip_low) | (ratio > 1 + objective.clip_high)  # [n]
    sums.add("loss", loss, torch.ones(()))
    sums.add("kl_base", kl, rows.weights)
    sums.add("ratio", ratio, rows.weights)
    sums.add("clip_fraction", beyond.float(), rows.weights)
    sums.add("importance_weight", importance, rows.weights * rows.sampled)
    return loss, logprobs.detach()


class Trainer:
    """A policy, its optimiser, and what is minimised."""

    def __init__(
        self,
        policy: Policy,
        objective: Objective,
        *,
        learning_rate: float = 3e-4,
        max_grad_norm: float = 1.0,
        max_norm: float = float("inf"),
        micro_tokens: int = 512,
        ranks: Ranks | None = None,
    ) -> None:
        """Begin with a fresh optimiser.

        Args:
            learning_rate: of AdamW, constant but for `Objective.opd_only`; β (0.9, 0.98), no weight decay.
            max_grad_norm: the gradient is scaled down to this norm.
            max_norm: so is the adapter's whole update, after each step.
            micro_tokens: tokens whose activations are held at once.
            ranks: the processes that share each step's work; all of them take every step, on the same samples.
        """
        self.ranks = ranks or Alone()
        self.policy = policy
        self.objective = objective
        self.max_grad_norm = max_grad_norm
        self.max_norm = max_norm
        self.micro_tokens = micro_tokens
        self.learning_rate = learning_rate
        self.references = References(policy, top_k=objective.top_k)
        self.optimiser = torch.optim.AdamW(policy.parameters(), lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.0)

    def step(
        self, samples: Sequence[Sample], *, epochs: int = 1, on_progress: Callable[[float], None] | None = None
    ) -> dict[str, float]:
        """Learn from a batch once, or `epochs` times with the first pass as π_old.

        The loss is a mean over each response's tokens, then over the responses (`losses.token_weights`), for every
        term: a sample without a teacher counts as 0 in the OPD term, one without a score as 0 in the Binary RL term.

        Args:
            samples: any mix of samples with a score, with a teacher, with both. One is enough.
            epochs: optimiser updates on this batch. With one, π_old is the policy itself and costs nothing.
            on_progress: called with the share of the batch's work that is done, 0 to 1; may raise to stop.

        Returns:
            Of the last epoch: loss, rl_loss, opd_loss, opd_kl and kl_base (nats a token), ratio (mean π_θ / π_old),
            importance_weight (mean), clip_fraction, grad_norm, norm (of the update, before it is bounded), rate (share
            of the learning rate), reward (mean score), samples, tokens (of responses), seconds.

        Raises:
            LearnError: no samples, another process failed, or something was not finite, and then the weights are as the
                last update left them.
        """
        if not samples:
            raise LearnError(
                "There is nothing to learn from: the batch is empty. Correct or rate an answer, then try again."
            )
        began = time.perf_counter()
        order = sorted(samples, key=lambda sample: sample.tokens)
        sizes = [sample.tokens for sample in order]
        most = min(self.micro_tokens, -(-sum(sizes) // self.ranks.count))  # Something for every process.
        groups = [[order[index] for index in group] for group in split_by_tokens(sizes, most)]
        worth = [sample.weight * self.objective.share(sample) for sample in order]
        rate = sum(worth) / (sum(sample.weight for sample in order) or 1.0)
        weights = losses.token_weights([len(sample.response_ids) for sample in order], worth)  # [R]
        shares = torch.split(weights, [sum(len(sample.response_ids) for sample in group) for group in groups])
        mine = self.ranks.share(list(zip(groups, shares, strict=True)))
        parts = max(1, len(mine) * (epochs + 1))

        def report(done: int) -> None:
            if on_progress is not None:
                on_progress(done / parts)

        rows: list[Rows] = []
        with self.ranks.in_step():
            for group, share in mine:
                rows.append(gather_rows(group, self.references.of(group), share))
                report(len(rows))
        old: list[torch.Tensor | None] = [None] * len(mine)
        sums, grad_norm, norm = Sums(), 0.0, 0.0
        for epoch in range(epochs):
            sums = Sums()
            self.optimiser.zero_grad(set_to_none=True)
            with self.ranks.in_step():
                for index, (group, _) in enumerate(mine):
                    logprobs = self._backward(group, rows[index], old[index], sums)
                    if epoch == 0:
                        old[index] = logprobs
                    report(len(mine) * (epoch + 1) + index + 1)
            self._add_up_gradients()
            gradient = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            losses.require_finite("the gradient", gradient)
            grad_norm = float(gradient)
            # AdamW takes steps of one size whatever the loss is multiplied with: the rate makes them smaller.
            for settings in self.optimiser.param_groups:
                settings["lr"] = self.learning_rate * rate
            self.optimiser.step()
            norm = self.policy.bound(self.max_norm)
        sums = Sums(self.ranks.add_up_sums(sums.total), self.ranks.add_up_sums(sums.weight))
        self.optimiser.zero_grad(set_to_none=True)
        scores = [sample.score for sample in order if sample.score is not None]
        return {
            "loss": sums.total["loss"],
            "rl_loss": sums.total.get("rl_loss", 0.0),
            "opd_loss": sums.total.get("opd_loss", 0.0),
            "opd_kl": sums.mean("opd_kl"),
            "kl_base": sums.mean("kl_base"),
            "ratio": sums.mean("ratio"),
            "importance_weight": sums.mean("importance_weight"),
            "clip_fraction": sums.mean("clip_fraction"),
            "grad_norm": grad_norm,
            "norm": norm,
            "rate": rate,
            "reward": sum(scores) / len(scores) if scores else 0.0,
            "samples": float(len(samples)),
            "tokens": float(weights.shape[0]),
            "seconds": time.perf_counter() - began,
        }

    def _add_up_gradients(self) -> None:
        """Each process has those of its micro-batches; the batch's loss is the sum over all."""
        if self.ranks.count > 1:
            parameters = self.policy.parameters()
            for parameter in parameters:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            self.ranks.add_up([parameter.grad for parameter in parameters if parameter.grad is not None])

    def _backward(self, group: Sequence[Sample], rows: Rows, old: torch.Tensor | None, sums: Sums) -> torch.Tensor:
        """Add a micro-batch's gradient to the LoRA's.

        The graph is cut at the last hidden states: each chunk of rows is projected, turned into loss and
        differentiated on its own, then their gradient goes through the blocks in one piece.

        Returns:
            [R] log π_θ of the response tokens, without gradient.
        """
        hidden = self.policy.hidden(pack([(s.prompt_ids, s.response_ids) for s in group], self.policy.device))  # [R, D]
        leaf = hidden.detach().requires_grad_()  # [R, D]
        found = []
        rows_at_once = min(CHUNK_ROWS, self.policy.chunk_rows)
        for start in range(0, leaf.shape[0], rows_at_once):
            stop = min(start + rows_at_once, leaf.shape[0])
            part = rows.part(start, stop)
            part = Rows(**{entry.name: getattr(part, entry.name).to(hidden.device) for entry in fields(part)})
            before = None if old is None else old[start:stop]
            loss, logprobs = objective_loss(self.policy.logits(leaf[start:stop]), part, before, self.objective, sums)
            loss.backward()  # type: ignore[no-untyped-call]
            found.append(logprobs)
        hidden.backward(leaf.grad)  # type: ignore[no-untyped-call]
        return torch.cat(found)
