"""A disk that is slow at random: what the app asks for in the background takes its time now and then.

Races between what a person does and what the app is still waiting for show only so. Every test of the app can be run
this way: `pytest tests/app --slowed 1`; the number is where chance begins.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from claw_app import background

OFTEN, SELDOM = 0.2, 0.1
"""Which share of the calls waits for a short and for a long time."""
SHORT_S, LONG_S = 0.08, 0.5


def slowed(seed: int) -> Callable[..., Any]:
    """What takes the place of `background._bind`: the same, with calls that wait first, as chance has it."""
    chance, bind = random.Random(seed), background._bind

    def slow(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        drawn = chance.random()
        longest = LONG_S if drawn < SELDOM else SHORT_S if drawn < SELDOM + OFTEN else 0.0
        waits_s = chance.uniform(0, longest)

        def waiting(*args: Any, **options: Any) -> Any:
            time.sleep(waits_s)
            return function(*args, **options)

        return bind(waiting, args, options)

    return slow
