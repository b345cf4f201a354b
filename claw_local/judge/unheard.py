"""A judge whose word on the first question counts nothing, since it failed that exam: the words of a message decide.

They are read by rules that a person can look at (`data/judge_words.json`), as checks read a text, and by wordings that
were learned from labels (`phrases`). It must never ask the
judge it stands for about a message.
"""

from __future__ import annotations

import threading

import numpy as np

from ..signals.attached import own_words
from ..signals.quoted import spoken
from . import said, tools
from .calibration import CONFIDENCE, SCORES, VERDICTS, decide, posterior
from .directing import direct
from .verdict import AnyJudge, Identity, Verdict


class UnheardJudge:
    """Implements `AnyJudge` in the place of another one, whose second question stands."""

    def __init__(self, judge: AnyJudge, *, confidence: float = CONFIDENCE) -> None:
        self._judge = judge
        self._confidence = confidence

    @property
    def identity(self) -> Identity:
        return self._judge.identity

    def judge(
        self,
        question: str,
        reply: str,
        next_text: str,
        next_role: str = "user",
        cancel: threading.Event | None = None,
        *,
        working: bool = False,
    ) -> Verdict:
        """See `AnyJudge.judge`; nothing is computed, so nothing can fail."""
        version = f"words of {self.identity.version}"
        if next_role != "user":
            score = tools.outcome(next_text)
            return Verdict(score, {name: float(SCORES[name] == score) for name in VERDICTS}, "", "", False, [], version)
        question, next_text = own_words(question), spoken(next_text)
        nothing = np.zeros(len(VERDICTS))
        shares = posterior(nothing, nothing, said.evidence(question, reply, next_text, working=working))
        score = SCORES[decide(shares, self._confidence)] if next_text.strip() else 0
        direction = direct(score, next_text, reply)
        return Verdict(
            score,
            {name: round(float(share), 4) for name, share in zip(VERDICTS, shares, strict=True)},
            direction.hint,
            direction.scope,
            bool(direction.candidate),
            list(direction.refused),
            version,
            direction.candidate,
        )

    def read_ahead(self, question: str, reply: str, cancel: threading.Event | None = None) -> None:
        """Nothing: the model is not asked."""

    def follows(self, hint: str, reply: str, *, cancel: threading.Event | None = None) -> float:
        """The judge's own word; whether it counts is another exam."""
        return self._judge.follows(hint, reply, cancel=cancel)
