"""Whether the adapter in use does worse with the person than what was in use before. It must never know why.

The gate decides on measurements; this watches what the person says afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..language import _
from ..signals.turns import combine
from ..store import AdapterRecord, Store

LEAST_SINCE = 6
"""Fewest judged replies of the adapter before anything is said about it."""
LEAST_BEFORE = 6
"""Fewest judged replies from before to hold them against."""
WINDOW = 40
"""Most replies looked at on either side: what was long ago says little about now."""
LEAST_FALL = 0.4
"""Smallest fall of the mean score (-1 to 1) that is clear enough to act on."""
CHANCE = 0.05
"""Largest probability that such a fall would come about by chance."""
_DRAWS = 4000


@dataclass(frozen=True)
class Fall:
    """The live score fell: mean scores, how many replies they are of, and the probability of it being chance."""

    before: float
    since: float
    count_before: int
    count_since: int
    chance: float

    def sentence(self, adapter_id: int) -> str:
        return _(
            "Adapter {id} was rolled back: of its last {count_since} replies that you reacted to, "
            "the mean score was {since:+.2f}; of the {count_before} before it, {before:+.2f}. "
            "`claw-local adapters use {id}` brings it back.",
            id=adapter_id,
            count_since=self.count_since,
            since=self.since,
            count_before=self.count_before,
            before=self.before,
        )


def live_scores(store: Store, record: AdapterRecord) -> tuple[list[int], list[int]]:
    """Scores of the newest replies that were reacted to: of other adapters before, and of this one, oldest first. What
    a tool returned is no reaction: a command that fails says more of the machine than of who asked for it."""

    def scores(message_ids: Sequence[int]) -> list[int]:
        all_signals = store.signals.of(message_ids).values()
        found = [combine([one for one in signals if one.source != "tool"])[0] for signals in all_signals]
        return [score for score in found if score is not None]

    mine = store.signals.last_judged(record.model_sha256, record.id, limit=WINDOW)
    others = store.signals.last_judged(record.model_sha256, record.id, others=True, limit=WINDOW)
    return scores([identity for identity in others if not mine or identity < mine[0]]), scores(mine)


def fallen(before: Sequence[int], since: Sequence[int]) -> Fall | None:
    """Compare the scores (-1, 0, +1; newest last) of replies before an adapter was in use with those since.

    A one-sided permutation test (Fisher 1935) of the difference of means, on the newest `WINDOW` of each. None: it has
    not fallen clearly, or too little is known.
    """
    before, since = before[-WINDOW:], since[-WINDOW:]
    if len(before) < LEAST_BEFORE or len(since) < LEAST_SINCE:
        return None
    fall = float(np.mean(before) - np.mean(since))
    if fall < LEAST_FALL:
        return None
    together = np.array([*before, *since], dtype=float)
    draws = np.random.default_rng(0).permuted(np.tile(together, (_DRAWS, 1)), axis=1)
    chance = float(np.mean(draws[:, : len(before)].mean(1) - draws[:, len(before) :].mean(1) >= fall - 1e-9))
    if chance > CHANCE:
        return None
    return Fall(float(np.mean(before)), float(np.mean(since)), len(before), len(since), chance)
