"""A mean and how sure it is. It must never know of what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BOOTSTRAPS = 2000


@dataclass(frozen=True)
class Interval:
    """A mean of paired differences with its bootstrap interval, over `count` turns."""

    mean: float
    low: float
    high: float
    count: int


def bootstrap(differences: Sequence[float], confidence: float, seed: int = 0) -> Interval:
    """Mean of paired differences with its percentile bootstrap interval (Efron 1979).

    One difference alone has no spread to draw from: its interval reaches from minus to plus infinity.
    """
    values = np.asarray(differences, dtype=np.float64)
    if len(values) < 2:
        return Interval(float(values.mean()), float("-inf"), float("inf"), len(values))
    draws = np.random.default_rng(seed).integers(0, len(values), (BOOTSTRAPS, len(values)))
    means = values[draws].mean(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(values.mean()), float(low), float(high), len(values))
