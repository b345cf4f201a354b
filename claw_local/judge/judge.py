"""The judge: score and hint of one reply from its next state. It must never know the store or what is learned from it.

The base model's calibrated few-shot log-probabilities are the main signal; the words of the message are a log-linear
prior beside it; below a confidence it abstains.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..engine.base import Engine
from ..signals.attached import own_words
from . import filters, hints, scoring, tools, words
from .calibration import CONFIDENCE, SCORES, VERDICTS, Floats, decide, posterior
from .trained import FORMAT, Trained

Score = Literal[-1, 0, 1]


@dataclass(frozen=True)
class Verdict:
    """What one reply was worth.

    Attributes:
        score: -1 bad, 0 neutral or not sure, +1 good.
        probabilities: of "good", "neutral" and "bad"; they add up to 1.
        hint: the person's words on how it should have been; "" if there are none that may be kept.
        scope: "everywhere" (form and manner), "turn" (this turn's content), "" without a hint.
        directive: whether the message said how the answer should be, even if no filter let it through.
        filters: names of the filters that refused the hint.
        version: which examples, words and rules judged.
        candidate: the hint before the filters; "" if there was none.
    """

    score: Score
    probabilities: dict[str, float]
    hint: str
    scope: str
    directive: bool
    filters: list[str] = field(default_factory=list)
    version: str = ""
    candidate: str = ""


@dataclass(frozen=True)
class Reading:
    """What a verdict is made of: [3] each, in the order of `VERDICTS`.

    Attributes:
        logprobs: of the verdict words after the message, in nats.
        prior: the same after content-free messages.
        evidence: nats that the message's own words add.
        probabilities: what comes of the three.
    """

    logprobs: Floats
    prior: Floats
    evidence: Floats
    probabilities: Floats


def version() -> str:
    """Changes whenever the judge's data change."""
    digest = hashlib.sha256((scoring.raw() + words.raw()).encode()).hexdigest()
    return f"few-shot-1-{digest[:8]}"


class Judge:
    """Judges on one engine. Calls may come from any thread.

    Args:
        engine: its base model judges; the chat's KV and adapters are not touched.
        trained: the engine's judge's adapters were trained for this: they are asked with the prompt they know.
        lexical: whether the words of a message count beside the model; None: if it was not trained.
        confidence: least probability of good or bad.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        trained: bool = False,
        lexical: bool | None = None,
        confidence: float = CONFIDENCE,
    ) -> None:
        self._few_shot = scoring.FewShot(engine)
        self._trained = Trained(engine) if trained else None
        self._lexical = not trained if lexical is None else lexical
        self._confidence = confidence
        self._version = f"trained-{FORMAT}" if trained else version()

    def judge(
        self,
        question: str,
        reply: str,
        next_text: str,
        next_role: str = "user",
        cancel: threading.Event | None = None,
    ) -> Verdict:
        """Judge `reply`, which answered `question`, by the message that followed it.

        Raises:
            Cancelled: `cancel` was set before it was done.
        """
        if next_role != "user":
            return self._by_outcome(next_text)
        # What a file says in an attachment is neither praise nor a wish.
        question, next_text = own_words(question), own_words(next_text)
        if not next_text.strip():
            return Verdict(0, {"good": 0.0, "neutral": 1.0, "bad": 0.0}, "", "", False, [], self._version)
        probabilities = self.read(question, reply, next_text, cancel).probabilities
        score = SCORES[decide(probabilities, self._confidence)]
        named: dict[str, float] = {
            verdict: round(float(p), 4) for verdict, p in zip(VERDICTS, probabilities, strict=True)
        }
        hint = hints.extract(next_text) if score < 0 else (hints.clear_wish(next_text) if score > 0 else "")
        refused = filters.failed(hint) if hint else []
        # A secret beside the hint says nothing against the hint; system talk beside it does.
        if hint and filters.is_system_talk(next_text) and "system_talk" not in refused:
            refused.append("system_talk")
        kept = hint if not refused else ""
        scope = hints.scope_of(kept) if kept else ""
        return Verdict(score, named, kept, scope, bool(hint), refused, self._version, hint)

    def read(self, question: str, reply: str, message: str, cancel: threading.Event | None = None) -> Reading:
        """What the model and the words say of a person's message.

        Raises:
            Cancelled: `cancel` was set before it was done.
        """
        if self._trained is not None:
            prior = np.zeros(len(VERDICTS))  # It was trained on all verdicts alike: nothing leans.
            logprobs = self._trained.logprobs(question, reply, message, cancel=cancel)
        else:
            prior = self._few_shot.prior(cancel=cancel)
            logprobs = self._few_shot.logprobs(message, cancel=cancel)
        evidence = words.evidence(question, reply, message) if self._lexical else np.zeros(len(VERDICTS))
        return Reading(logprobs, prior, evidence, posterior(logprobs, prior, evidence))

    def _by_outcome(self, text: str) -> Verdict:
        """A tool's outcome is evaluative only: nothing a tool says is ever a hint."""
        score = tools.outcome(text)
        named: dict[str, float] = {verdict: float(SCORES[verdict] == score) for verdict in VERDICTS}
        return Verdict(score, named, "", "", False, [], self._version)
