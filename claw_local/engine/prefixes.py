"""What token sequences have in common. It must never know what they mean."""

from __future__ import annotations

from collections.abc import Sequence


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts begin with alike. Both must be of the same kind, such as lists."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
