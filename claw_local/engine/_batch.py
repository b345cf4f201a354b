"""Several replies decoded together in one batch, which a processor does nearly as quickly as one.

It must never know about locks or turns: the engine runs it step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ._kept import LEAST, chunks
from ._native import NativeContext
from ._writing import Writing

MOST_TOGETHER = 8
"""Replies in one batch."""


@dataclass(frozen=True)
class _Place:
    """One token of a batch: whose it is, where it stands, and whether its logits are wanted."""

    token: int
    position: int
    row: int
    wanted: bool


def common_prefix(prompts: Sequence[Sequence[int]]) -> int:
    """Tokens that all prompts begin with, leaving at least one of each to be computed for itself."""
    most = min(len(prompt) for prompt in prompts) - 1
    for place in range(most):
        if any(prompt[place] != prompts[0][place] for prompt in prompts[1:]):
            return place
    return max(0, most)


def cells(prompts: Sequence[Sequence[int]], longest: int, limit: int) -> int:
    """KV cells that a wave needs for prompts and replies of up to `longest` tokens; no row is longer than `limit`."""
    shared = common_prefix(prompts) if len(prompts) > 1 else 0
    return shared + sum(min(len(prompt) + longest, limit) - shared for prompt in prompts)


def waves(prompts: Sequence[Sequence[int]], longest: int, limit: int) -> list[range]:
    """Cut prompts into runs decoded together: at most `MOST_TOGETHER`, and at most twice the chat's KV cells."""
    found: list[range] = []
    start = 0
    for end in range(1, len(prompts) + 1):
        size = end + 1 - start
        if end == len(prompts) or size > MOST_TOGETHER or cells(prompts[start : end + 1], longest, limit) > 2 * limit:
            found.append(range(start, end))
            start = end
    return found


def write_together(context: NativeContext, writings: Sequence[Writing]) -> Iterator[None]:
    """Write all replies; each step of the iterator is one batch. Stop iterating to stop writing.

    What all prompts begin with is computed once. A reply that is finished leaves the batch.
    """
    context.clear()
    prompts = [writing.generation.prompt_ids for writing in writings]
    shared = common_prefix(prompts) if len(prompts) > 1 else 0
    shared = shared if shared >= LEAST else 0
    writings[0].generation.evaluated += shared
    for start, stop in chunks(0, shared, context.batch):
        context.decode(prompts[0][start:stop], start, 0)
        yield
    if shared:
        for row in range(1, len(writings)):
            context.copy(0, row)
    places: list[_Place] = []
    for row, prompt in enumerate(prompts):
        writings[row].generation.evaluated += len(prompt) - shared
        places += [_Place(prompt[n], n, row, n == len(prompt) - 1) for n in range(shared, len(prompt))]
    for start, stop in chunks(0, len(places), context.batch):
        _decode(context, places[start:stop], writings)
        yield
    while active := [row for row, writing in enumerate(writings) if not writing.done]:
        places = []
        for row in active:
            generation = writings[row].generation
            position = len(generation.prompt_ids) + len(generation.response_ids) - 1
            places.append(_Place(generation.response_ids[-1], position, row, True))
        _decode(context, places, writings)
        yield


def _decode(context: NativeContext, places: Sequence[_Place], writings: Sequence[Writing]) -> None:
    wanted = [n for n, place in enumerate(places) if place.wanted]
    context.decode(
        [place.token for place in places],
        [place.position for place in places],
        [place.row for place in places],
        wanted,
    )
    for n in wanted:
        writings[places[n].row].accept(context.logits(n))
