"""What is free in the heap goes back to the system."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest

from claw_local import heap


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be asked")
def test_holes_that_threads_left_go_back() -> None:
    def much() -> list[np.ndarray]:
        return [np.ones(2_500) for _ in range(1_000)]  # 20 MB, in pieces that no C library maps by themselves

    process = psutil.Process()
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: much(), range(4)))
        full = process.memory_info().rss
        left = [part[::100] for part in made]  # What is still in use lies between the holes.
        del made
        heap.give_back()
        assert process.memory_info().rss < full - 50_000_000
        assert sum(map(len, left)) == 40
