"""Contextual calibration and the decision rule. It must never know words or models: numbers in, numbers out.

Source: Zhao et al., "Calibrate Before Use" (arXiv 2102.09690): a few-shot prompt leans to some verdicts whatever the
case is; what it says of content-free cases shows the lean, and is taken off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
VerdictName = Literal["good", "neutral", "bad"]

VERDICTS: tuple[VerdictName, ...] = ("good", "neutral", "bad")
"""Order of every array of verdicts here."""
SCORES: dict[VerdictName, Literal[-1, 0, 1]] = {"good": 1, "neutral": 0, "bad": -1}

CONFIDENCE = 0.45
"""Least probability of good or bad; below it the judge abstains: score 0, no hint. Three verdicts: chance is 0.33."""


def log_softmax(logits: npt.NDArray[np.floating]) -> Floats:
    """[V] log-probabilities, in nats."""
    shifted = logits.astype(np.float64) - float(logits.max())
    result: Floats = shifted - np.log(np.exp(shifted).sum())
    return result


def prior_of(content_free: Sequence[Floats]) -> Floats:
    """[3] mean log-probabilities of the verdict words over content-free cases ([3] each): the prompt's lean."""
    result: Floats = np.mean(np.stack(content_free), axis=0)
    return result


def posterior(logprobs: Floats, prior: Floats, evidence: Floats) -> Floats:
    """[3] probabilities: softmax(log-probabilities - lean + evidence in nats)."""
    result: Floats = np.exp(log_softmax(logprobs - prior + evidence))
    return result


def decide(probabilities: Floats, confidence: float = CONFIDENCE) -> VerdictName:
    """The likeliest verdict; neutral where good or bad is not likely enough."""
    best = int(probabilities.argmax())
    return VERDICTS[best] if probabilities[best] >= confidence else "neutral"
