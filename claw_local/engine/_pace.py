"""How many prompt tokens go into one batch: as many as keep the others' next token from coming late.

It must never know whose tokens they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ._kept import LEAST

STEP_S = 0.12
"""Longest a batch should take while replies are being written."""
ALONE_S = 0.2
"""The same while prompts alone are read: who comes then, or gives up, waits so long."""
FEWEST = 16
"""Prompt tokens in a batch however slow the machine is, or a long prompt would never be read."""
_COUNTED = 16
"""Batches of fewer tokens say little about what one more costs."""


class Pace:
    """Learns what a token costs on this machine."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._token_s = 0.004

    def room(self, writing: bool) -> int:
        """Prompt tokens for the next batch."""
        wished = (STEP_S if writing else ALONE_S) / self._token_s
        return max(min(FEWEST, self._most), min(self._most, int(wished)))

    def note(self, tokens: int, seconds: float) -> None:
        """A batch of so many tokens took so long."""
        if tokens >= _COUNTED:
            self._token_s += 0.3 * (seconds / tokens - self._token_s)


def share(wants: Sequence[int], room: int) -> list[int]:
    """Divide `room` among those who want so much each: half of it in equal parts, so that each gets on, and the rest to
    those who want least, so that short prompts are soon read.

    Nobody is left with one token for the next time: a batch of one rounds otherwise.
    """
    part = max(1, room // 2 // max(1, len(wants)))
    given = [0] * len(wants)
    by_want = sorted(range(len(wants)), key=lambda n: wants[n])
    for n in by_want:
        given[n] = min(part, wants[n], room)
        room -= given[n]
    for n in by_want:
        more = min(wants[n] - given[n], room)
        given[n] += more
        room -= more
    return [
        want - LEAST if want - some == 1 and want > LEAST + 1 else some for want, some in zip(wants, given, strict=True)
    ]
