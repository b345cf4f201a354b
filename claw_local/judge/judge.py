"""The judge: score and hint of one reply from its next state. It must never know the store or what is learned from it.

The model's log-probabilities are the main signal (a base model's few-shot and calibrated); what the message says by
itself, by lists of words and by wordings learned from labels, is a log-linear prior beside it; below a confidence it
abstains.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass

import numpy as np

from ..engine.base import Engine
from ..errors import ClawError
from ..signals.attached import own_words
from ..signals.quoted import spoken
from . import asking, hints, said, scoring, tools, words
from .calibration import CONFIDENCE, SCORES, VERDICTS, Floats, decide, posterior
from .deadline import within
from .directing import direct
from .saying import TIMEOUT_S, say
from .trained import FORMAT, Trained
from .verdict import Identity, Score, Verdict

TRAINED = 0.75
"""How much a trained judge's log-probabilities count beside what a message says by itself: it is surer than right.
Chosen on the shipped dev examples and on what of `scored.jsonl` is held back."""

__all__ = ["Judge", "Reading", "Score", "Verdict", "version"]


@dataclass(frozen=True)
class Reading:
    """What a verdict is made of: [3] each, in the order of `VERDICTS`.

    Attributes:
        logprobs: of the verdict words after the message, in nats; a trained judge's times `TRAINED`.
        prior: the same after content-free messages.
        evidence: nats that the message adds by itself.
        probabilities: what comes of the three.
    """

    logprobs: Floats
    prior: Floats
    evidence: Floats
    probabilities: Floats


def version() -> str:
    """Changes whenever the judge's data change."""
    digest = hashlib.sha256((scoring.raw() + said.version()).encode()).hexdigest()
    return f"few-shot-1-{digest[:8]}"


def trained_version() -> str:
    """The same of a trained judge."""
    digest = hashlib.sha256(f"{said.version()}{TRAINED}".encode()).hexdigest()
    return f"trained-{FORMAT}-{digest[:8]}"


class Judge:
    """Judges on one engine by the log-probabilities of verdict words. Implements `AnyJudge`.

    Args:
        engine: its base model judges; the chat's KV and adapters are not touched.
        trained: the engine's judge's adapters were trained for this: they are asked with the prompt they know.
        words_weight: how much what a message says by itself counts beside the model.
        confidence: least probability of good or bad.
        adapter: SHA-256 of the engine's judge's adapters; "" without one.
        timeout_s: longest that one question may take.
        writes_hints: whether the model may put hints into words of its own.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        trained: bool = False,
        words_weight: float = 1.0,
        confidence: float = CONFIDENCE,
        adapter: str = "",
        timeout_s: float = TIMEOUT_S,
        writes_hints: bool = False,
    ) -> None:
        self._engine = engine
        self._few_shot = scoring.FewShot(engine)
        self._prompts = Trained(engine)
        self._trained = trained
        self._words_weight = words_weight
        self._confidence = confidence
        self._timeout_s = timeout_s
        self._writes_hints = writes_hints
        self._version = trained_version() if trained else version()
        self._identity = Identity(engine.info.sha256, adapter, self._version)

    @property
    def identity(self) -> Identity:
        return self._identity

    @property
    def words_weight(self) -> float:
        """How much what a message says by itself counts; 0: it does not."""
        return self._words_weight

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
        """Judge `reply`, which answered `question`, by the message that followed it.

        Raises:
            Cancelled: `cancel` was set before it was done. JudgeError: it took longer than `timeout_s`.
        """
        if next_role != "user":
            return self._by_outcome(next_text)
        # What a file says in an attachment is neither praise nor a wish.
        question, next_text = own_words(question), spoken(next_text)
        if not next_text.strip():
            return Verdict(0, {"good": 0.0, "neutral": 1.0, "bad": 0.0}, "", "", False, [], self._version)
        probabilities = self.read(question, reply, next_text, cancel, working=working).probabilities
        score = SCORES[decide(probabilities, self._confidence)]
        if working and score < 0 and not words.speaks_against(question, reply, next_text, working=True):
            # No judge was taught what people say to one who works with tools: "Put it into report.txt" is more work,
            # which it takes for a complaint. Where no word is one, no lesson is better than a wrong one.
            score = 0
        named: dict[str, float] = {
            verdict: round(float(p), 4) for verdict, p in zip(VERDICTS, probabilities, strict=True)
        }
        direction = direct(score, next_text, reply, self._written(score, question, reply, next_text, cancel))
        return Verdict(
            score,
            named,
            direction.hint,
            direction.scope,
            bool(direction.candidate),
            list(direction.refused),
            self._version,
            direction.candidate,
            (),
            direction.written,
            direction.dropped,
        )

    def read(
        self,
        question: str,
        reply: str,
        message: str,
        cancel: threading.Event | None = None,
        *,
        working: bool = False,
    ) -> Reading:
        """What the model and the words say of a person's message.

        Raises:
            Cancelled: `cancel` was set before it was done. JudgeError: it took longer than `timeout_s`.
        """
        prior = np.zeros(len(VERDICTS))  # A trained judge knows all verdicts alike: nothing leans.
        with within(self._timeout_s, cancel, self._engine) as deadline:
            if self._trained:
                logprobs = TRAINED * self._prompts.logprobs(question, reply, message, cancel=deadline)
            else:
                prior = self._few_shot.prior(cancel=deadline)
                logprobs = self._few_shot.logprobs(message, cancel=deadline)
        evidence = self._words_weight * said.evidence(question, reply, message, working=working)
        return Reading(logprobs, prior, evidence, posterior(logprobs, prior, evidence))

    def read_ahead(self, question: str, reply: str, cancel: threading.Event | None = None) -> None:
        """See `AnyJudge.read_ahead`. The few-shot judge keeps its examples' KV and is not shown the reply."""
        if self._trained:
            with within(self._timeout_s, cancel, self._engine) as deadline:
                self._prompts.read_ahead(own_words(question), reply, cancel=deadline)

    def follows(self, hint: str, reply: str, *, cancel: threading.Event | None = None) -> float:
        """Probability that the reply follows the hint; see `AnyJudge.follows`."""
        with within(self._timeout_s, cancel, self._engine) as deadline:
            return self._prompts.follows(hint, reply, cancel=deadline)

    def prompt_of(self, question: str, reply: str, message: str) -> tuple[list[int], list[int]]:
        """Tokens of the first question as it is asked here, and the token of each of `VERDICTS`: for training it."""
        if self._trained:
            return self._prompts.verdict_prompt(question, reply, message)
        return self._few_shot.prompt(message)

    def _written(
        self, score: Score, question: str, reply: str, message: str, cancel: threading.Event | None
    ) -> list[str]:
        """The hint in the model's words, if it may write and manages to: the verdict does not depend on it."""
        if not self._writes_hints or score == 0 or (score > 0 and not hints.clear_wish(message)):
            return []
        prompt = asking.hint_prompt(question, reply, message)
        try:
            text = say(self._engine, prompt, asking.HINT_SHAPE, timeout_s=self._timeout_s, cancel=cancel)
        except ClawError:
            return []
        return [asking.read_hint(text) or ""]

    def _by_outcome(self, text: str) -> Verdict:
        """A tool's outcome is evaluative only: nothing a tool says is ever a hint."""
        score = tools.outcome(text)
        named: dict[str, float] = {verdict: float(SCORES[verdict] == score) for verdict in VERDICTS}
        return Verdict(score, named, "", "", False, [], self._version)
