"""What the two frozen views say about samples, asked once and remembered. It must never know about the optimiser."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from .batches import Sample, Turn
from .policy import Policy

Key = tuple[tuple[int, ...], tuple[int, ...] | None, tuple[int, ...]]


@dataclass(frozen=True)
class Reference:
    """What the frozen views say about one sample's response tokens.

    Attributes:
        base: [T] log π_base.
        teacher: [T] log π_T; None without a teacher's prompt.
        topk_ids, topk: [T, K] the teacher's likeliest tokens and their log-probabilities; None likewise.
    """

    base: torch.Tensor
    teacher: torch.Tensor | None = None
    topk_ids: torch.Tensor | None = None
    topk: torch.Tensor | None = None


class References:
    """Asks the base and the teacher. A replayed sample costs nothing the second time."""

    def __init__(self, policy: Policy, *, top_k: int, most: int = 256) -> None:
        """Args:
        top_k: K of the teacher's likeliest tokens that are kept.
        most: samples that are remembered; each takes about 12 · T · K bytes.
        """
        self.policy = policy
        self.top_k = top_k
        self.most = most
        self._kept: OrderedDict[Key, Reference] = OrderedDict()

    def of(self, samples: Sequence[Sample]) -> list[Reference]:
        """One reference for each sample, in order."""
        keys = [(s.prompt_ids, s.teacher_prompt_ids, s.response_ids) for s in samples]
        new = {key: sample for key, sample in zip(keys, samples, strict=True) if key not in self._kept}
        found = self._ask(list(new.values()))
        self._kept.update(zip(new, found, strict=True))
        references = [self._kept[key] for key in keys]
        for key in keys:
            self._kept.move_to_end(key)
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)
        return references

    def kept(self) -> Iterator[tuple[Key, Reference]]:
        """What is remembered, by (prompt, teacher's prompt, response); what was asked for longest ago comes first."""
        yield from self._kept.items()

    def restore(self, kept: Mapping[Key, Reference]) -> None:
        """Remember this, and nothing else: in another batch the views would round a little differently."""
        self._kept = OrderedDict(kept)

    def _ask(self, samples: list[Sample]) -> list[Reference]:
        base = self.policy.response_logprobs("base", [(s.prompt_ids, s.response_ids) for s in samples])
        taught = [index for index, sample in enumerate(samples) if sample.teacher_prompt_ids is not None]
        references = [Reference(logprobs) for logprobs in base]
        turns: list[Turn] = [(samples[i].teacher_prompt_ids or (), samples[i].response_ids) for i in taught]
        pieces: list[list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]] = [[] for _ in taught]
        for place, start, logits in self.policy.response_logits("teacher", turns):
            targets = torch.tensor(turns[place][1][start : start + logits.shape[0]], device=logits.device)
            normaliser = logits.logsumexp(1, keepdim=True)  # [n, 1]
            top = logits.topk(min(self.top_k, logits.shape[1]), dim=1)  # [n, K]
            chosen = logits.gather(1, targets[:, None]) - normaliser  # [n, 1]
            pieces[place].append((chosen[:, 0].cpu(), top.indices.cpu(), (top.values - normaliser).cpu()))
        for place, index in enumerate(taught):
            logprobs, ids, topk = (torch.cat(parts) for parts in zip(*pieces[place], strict=True))
            references[index] = Reference(base[index], logprobs, ids, topk)
        return references
