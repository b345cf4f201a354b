"""Samples and how they become tensors. It must never know about models, losses or where a sample came from.

Sequences are packed one after another without padding; each keeps its own positions and sees only itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from claw_local.errors import LearnError

Turn = tuple[Sequence[int], Sequence[int]]
"""A prompt [P] and a response [T] whose tokens' log-probabilities are wanted."""


@dataclass(frozen=True)
class Sample:
    """One response to learn from. With a score it feeds Binary RL, with a teacher's prompt OPD, with both both.

    Attributes:
        prompt_ids: [P] tokens that the policy answered (x).
        response_ids: [T] tokens it wrote (y), the end-of-turn token included if it was sampled.
        teacher_prompt_ids: [Q] the same prompt with the hint in it (x, h); None without a hint.
        behaviour_logprobs: [T] log π_b of each response token when it was sampled, in nats; None if not known.
        score: reward of the response, -1 to +1 (-2 to +2 with session outcomes); None without a verdict.
        weight: share of this sample in the batch, relative to the others.
        message_id: the stored message it came from; None for a fresh answer.
    """

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    teacher_prompt_ids: tuple[int, ...] | None = None
    behaviour_logprobs: tuple[float, ...] | None = None
    score: float | None = None
    weight: float = 1.0
    message_id: int | None = None

    def __post_init__(self) -> None:
        """Raises LearnError if the sample cannot be learned from as it stands."""
        where = f"message {self.message_id}" if self.message_id is not None else "a fresh answer"
        if not self.prompt_ids or not self.response_ids or self.teacher_prompt_ids == ():
            raise LearnError(f"The sample of {where} has an empty prompt or response. Leave it out.")
        if self.behaviour_logprobs is not None and len(self.behaviour_logprobs) != len(self.response_ids):
            raise LearnError(
                f"The sample of {where} has {len(self.response_ids)} response tokens but "
                f"{len(self.behaviour_logprobs)} log-probabilities. Leave it out."
            )
        numbers = (self.weight, self.score or 0.0, *(self.behaviour_logprobs or ()))
        if not all(math.isfinite(number) for number in numbers) or self.weight < 0:
            raise LearnError(f"The sample of {where} has a weight, score or log-probability that is not finite.")

    @property
    def tokens(self) -> int:
        """Tokens that a forward pass over it takes."""
        return len(self.prompt_ids) + len(self.response_ids) - 1


@dataclass(frozen=True)
class Packed:
    """Sequences laid end to end: N tokens in all, R of them predicting a response token.

    Attributes:
        token_ids: [N] prompts and responses; the last token of each response predicts nothing and is left out.
        position_ids: [N] each sequence counts from 0.
        lengths: [B] tokens of each sequence, summing to N.
        rows: [R] indices into N of the tokens that predict response tokens.
        targets: [R] the response tokens they predict.
        response_lengths: [B] response tokens of each sequence, summing to R.
    """

    token_ids: torch.Tensor
    position_ids: torch.Tensor
    lengths: tuple[int, ...]
    rows: torch.Tensor
    targets: torch.Tensor
    response_lengths: tuple[int, ...]


def turn_tokens(turn: Turn) -> int:
    """Tokens that a forward pass over a turn takes: the last response token predicts nothing."""
    return len(turn[0]) + len(turn[1]) - 1


def pack(turns: Sequence[Turn], device: torch.device | str = "cpu") -> Packed:
    """Lay turns end to end.

    Args:
        turns: [B] turns, neither prompt nor response empty.
    """
    token_ids: list[int] = []
    positions: list[int] = []
    rows: list[int] = []
    targets: list[int] = []
    for prompt, response in turns:
        first = len(token_ids) + len(prompt) - 1
        rows.extend(range(first, first + len(response)))
        targets.extend(response)
        token_ids.extend(prompt)
        token_ids.extend(response[:-1])
        positions.extend(range(turn_tokens((prompt, response))))
    return Packed(
        token_ids=torch.tensor(token_ids, device=device),
        position_ids=torch.tensor(positions, device=device),
        lengths=tuple(turn_tokens(turn) for turn in turns),
        rows=torch.tensor(rows, device=device),
        targets=torch.tensor(targets, device=device),
        response_lengths=tuple(len(response) for _, response in turns),
    )


def split_by_tokens(sizes: Sequence[int], most: int) -> Iterator[list[int]]:
    """Group items, in order, so that each group holds at most `most` tokens, or a single longer item.

    Args:
        sizes: tokens of each item.
        most: tokens a group may hold.

    Yields:
        Lists of indices into `sizes`; together they hold each index once, in order.
    """
    group: list[int] = []
    held = 0
    for index, size in enumerate(sizes):
        if group and held + size > most:
            yield group
            group, held = [], 0
        group.append(index)
        held += size
    if group:
        yield group
