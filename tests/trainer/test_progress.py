"""Which questions come up how often."""

from __future__ import annotations

import json

import numpy as np
import pytest

from claw_trainer.progress import LEAST, NEED, Progress


def after(*rewards: float) -> float:
    progress = Progress(1)
    for reward in rewards:
        progress.note(0, reward)
    return float(progress.weights()[0])


def test_worked_by_hand() -> None:
    # Success 0, then 1: quick 0 + 0.5 · 1 = 0.5, slow 0 + 0.15 · 1 = 0.15.
    assert np.isclose(after(-1, 1), LEAST + NEED * 0.5 + 0.35)
    assert np.isclose(after(1), LEAST)
    assert np.isclose(after(-1), LEAST + NEED)


def test_what_is_nearly_learned_is_practised_least_and_what_changes_most() -> None:
    learned, rising, falling, never = after(*[1] * 6), after(-1, -1, 1, 1), after(1, 1, -1, -1), after(*[-1] * 6)
    assert learned < never < rising
    assert falling > never, "what is being forgotten comes up again"
    assert after(-1, -1, *[1] * 20) < 1.3 * LEAST, "learned for long, its progress fades"


def test_what_was_never_tried_comes_first_and_nothing_is_ever_left_out() -> None:
    progress = Progress(3)
    progress.note(0, 1.0)
    progress.note(1, -1.0)
    weights = progress.weights()
    assert weights.argmax() == 2
    assert (weights > 0).all() and np.isfinite(weights).all()


def test_it_goes_on_from_where_it_was() -> None:
    progress = Progress(3)
    progress.note(0, 1.0)
    progress.note(1, -0.5)
    other = Progress(3)
    other.restore(json.loads(json.dumps(progress.state())))
    assert np.array_equal(other.weights(), progress.weights())
    with pytest.raises(ValueError, match="3 questions, not 2"):
        Progress(2).restore(progress.state())
