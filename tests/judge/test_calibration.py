"""Calibration and the decision rule, against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from claw_local.judge.calibration import decide, log_softmax, posterior, prior_of


def test_log_softmax_of_equal_logits_is_uniform() -> None:
    assert log_softmax(np.zeros(4, dtype=np.float32)) == pytest.approx([-np.log(4)] * 4)


def test_the_prior_is_the_mean_log_probability() -> None:
    assert prior_of([np.array([-1.0, -2.0, -3.0]), np.array([-3.0, -2.0, -1.0])]) == pytest.approx([-2.0, -2.0, -2.0])


def test_a_case_like_the_content_free_ones_is_undecided() -> None:
    logprobs = np.array([-0.5, -3.0, -1.5])
    assert posterior(logprobs, logprobs, np.zeros(3)) == pytest.approx([1 / 3] * 3)


def test_evidence_counts_in_nats() -> None:
    zero = np.zeros(3)
    assert posterior(zero, zero, np.array([0.0, 0.0, np.log(2)])) == pytest.approx([0.25, 0.25, 0.5])


def test_below_the_confidence_the_verdict_is_neutral() -> None:
    assert decide(np.array([0.5, 0.3, 0.2]), 0.6) == "neutral"
    assert decide(np.array([0.5, 0.3, 0.2]), 0.5) == "good"
    assert decide(np.array([0.1, 0.2, 0.7]), 0.6) == "bad"
