"""What the loss needs of a micro-batch's response tokens, laid end to end. It must never know how the loss is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch

from . import losses
from .batches import Sample
from .references import Reference


@dataclass(frozen=True)
class Rows:
    """All that the loss of R response tokens needs, beside the policy's logits.

    Attributes:
        targets: [R] the tokens.
        weights: [R] each token's share of the batch's loss.
        advantages: [R] of Binary RL; 0 where `scored` is false.
        scored, sampled, taught: [R] bool: the sample has a score; its behaviour log-probabilities; a teacher.
        behaviour, base, teacher: [R] log-probabilities; 0 where not known.
        topk_ids, topk: [R, K] the teacher's likeliest tokens; 0 where not known.
    """

    targets: torch.Tensor
    weights: torch.Tensor
    advantages: torch.Tensor
    scored: torch.Tensor
    sampled: torch.Tensor
    taught: torch.Tensor
    behaviour: torch.Tensor
    base: torch.Tensor
    teacher: torch.Tensor
    topk_ids: torch.Tensor
    topk: torch.Tensor

    def part(self, start: int, stop: int) -> Rows:
        return Rows(**{entry.name: getattr(self, entry.name)[start:stop] for entry in fields(self)})


def gather_rows(samples: Sequence[Sample], references: Sequence[Reference], weights: torch.Tensor) -> Rows:
    """Lay the samples' tokens end to end, in the order in which `pack` lays them.

    Args:
        samples, references: [B]
        weights: [R]
    """
    lengths = [len(sample.response_ids) for sample in samples]
    counts = torch.tensor(lengths)
    k = max((r.topk.shape[1] for r in references if r.topk is not None), default=1)

    def spread(flags: list[bool]) -> torch.Tensor:
        return torch.tensor(flags).repeat_interleave(counts)

    return Rows(
        targets=torch.tensor([token for sample in samples for token in sample.response_ids]),
        weights=weights,
        advantages=losses.binary_rl_advantages([sample.score or 0.0 for sample in samples], lengths),
        scored=spread([sample.score is not None for sample in samples]),
        sampled=spread([sample.behaviour_logprobs is not None for sample in samples]),
        taught=spread([reference.teacher is not None for reference in references]),
        behaviour=torch.cat(
            [torch.tensor(s.behaviour_logprobs or [0.0] * n) for s, n in zip(samples, lengths, strict=True)]
        ),
        base=torch.cat([reference.base for reference in references]),
        teacher=torch.cat([_or_zeros(r.teacher, n) for r, n in zip(references, lengths, strict=True)]),
        topk_ids=torch.cat([_or_zeros(r.topk_ids, n, k).long() for r, n in zip(references, lengths, strict=True)]),
        topk=torch.cat([_or_zeros(r.topk, n, k) for r, n in zip(references, lengths, strict=True)]),
    )


def _or_zeros(values: torch.Tensor | None, *shape: int) -> torch.Tensor:
    return torch.zeros(shape) if values is None else values
