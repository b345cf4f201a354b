"""How well each question goes, how fast that changes, and so how often it should come up. It must never know why.

Absolute learning progress: the difference between a quick and a slow moving average of success (Kanitscheider et al.,
arXiv 2106.14876; Portelas et al., arXiv 1910.07224). A question whose success rises or falls teaches most; one that is
nearly learned, and stays so, is practised least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

QUICK, SLOW = 0.5, 0.15
"""Weight of the newest answer in the two averages."""
LEAST = 0.15
"""What every question weighs, so that none is forgotten."""
NEED = 0.5
"""What a question weighs more that never succeeds; its progress, at most 1, comes on top."""


class Progress:
    """Of a fixed number of questions, by their places."""

    def __init__(self, count: int) -> None:
        self._quick = np.full(count, np.nan)
        self._slow = np.full(count, np.nan)

    def note(self, place: int, reward: float) -> None:
        """An answer to the question had this reward, -1 to +1."""
        success = (reward + 1) / 2
        if np.isnan(self._quick[place]):
            self._quick[place] = self._slow[place] = success
        self._quick[place] += QUICK * (success - self._quick[place])
        self._slow[place] += SLOW * (success - self._slow[place])

    def state(self) -> dict[str, list[float | None]]:
        """All that `restore` needs, as JSON can hold it: the two averages, None where nothing is known."""
        return {
            name: [None if np.isnan(value) else float(value) for value in values]
            for name, values in (("quick", self._quick), ("slow", self._slow))
        }

    def restore(self, state: Mapping[str, Sequence[float | None]]) -> None:
        """Go on from `state()`. Raises ValueError if it is of another number of questions."""
        quick, slow = (np.array([np.nan if v is None else v for v in state[name]]) for name in ("quick", "slow"))
        if not len(quick) == len(slow) == len(self._quick):
            raise ValueError(f"a state of {len(quick)} questions, not {len(self._quick)}")
        self._quick, self._slow = quick, slow

    def weights(self) -> npt.NDArray[np.float64]:
        """[N] how often each should come up, relative to the others. One that was never tried comes first."""
        need = 1 - self._quick
        progress = np.abs(self._quick - self._slow)
        weights = LEAST + NEED * need + progress
        return np.where(np.isnan(weights), LEAST + NEED + 1.0, weights)
