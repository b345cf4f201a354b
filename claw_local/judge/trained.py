"""A judge that was trained: its prompts, one for each of its two questions, and how it is read. It must never decide.

A trained judge needs no examples in its prompt, so it can be shown the question and the reply too. The trainer and the
judge build the same text here; what is trained is what is asked.
"""

from __future__ import annotations

import threading
from typing import Literal

import numpy as np

from ..engine.base import Engine
from .calibration import VERDICTS, Floats, log_softmax
from .scoring import shorten

FORMAT = 2
"""Changes whenever a prompt below does; it stands in an adapter's record and in the version of its verdicts."""
QUESTION_WORDS = 24
REPLY_WORDS = 32
LONG_REPLY_WORDS = 160
"""A wish about form needs the reply's own lines, and most of it."""

Answer = Literal["yes", "no"]
ANSWERS: tuple[Answer, ...] = ("yes", "no")
"""Order of every array of answers to the second question."""
VERDICT_WORDS: tuple[str, ...] = tuple(f" {verdict}" for verdict in VERDICTS)
ANSWER_WORDS: tuple[str, ...] = tuple(f" {answer}" for answer in ANSWERS)


def next_state_prompt(question: str, reply: str, message: str) -> str:
    """First question: what does the next message say of the reply? Answered by one of `VERDICT_WORDS`."""
    return f"{beginning(question, reply)}Then: {shorten(message)}\nThe reply was:"


def beginning(question: str, reply: str) -> str:
    """What of that prompt is known before the person says anything. What is missing is left out."""
    parts = (("Question", shorten(question, QUESTION_WORDS)), ("Reply", shorten(reply, REPLY_WORDS)))
    return "".join(f"{name}: {text}\n" for name, text in parts if text)


def follows_prompt(hint: str, reply: str) -> str:
    """Second question: does the reply follow the hint? Answered by one of `ANSWER_WORDS`."""
    words = reply.split(" ")
    cut = reply if len(words) <= LONG_REPLY_WORDS else " ".join(words[:LONG_REPLY_WORDS]) + " ..."
    return f"Reply:\n{cut.strip() or '-'}\n\nWish: {shorten(hint, QUESTION_WORDS)}\nDoes the reply follow the wish?"


class Trained:
    """The trained prompts on one engine, whose judge's adapters are set."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._verdict_ids = [engine.tokenize(word)[0] for word in VERDICT_WORDS]
        self._answer_ids = [engine.tokenize(word)[0] for word in ANSWER_WORDS]

    def logprobs(self, question: str, reply: str, message: str, *, cancel: threading.Event | None = None) -> Floats:
        """[3] log-probabilities of good, neutral, bad among themselves, in nats.

        Raises:
            Cancelled: `cancel` was set before it was done.
        """
        return self._read(next_state_prompt(question, reply, message), self._verdict_ids, cancel)

    def read_ahead(self, question: str, reply: str, *, cancel: threading.Event | None = None) -> None:
        """Compute what of the first question is known already; the engine keeps it until something else is asked.

        Raises:
            Cancelled: `cancel` was set before it was done.
        """
        token_ids = self._engine.tokenize(beginning(question, reply) + "Then:")
        self._engine.next_logits([], token_ids, cancel=cancel)

    def verdict_prompt(self, question: str, reply: str, message: str) -> tuple[list[int], list[int]]:
        """[T] tokens of the first question, and [3] the token of each verdict word."""
        return self._engine.tokenize(next_state_prompt(question, reply, message)), list(self._verdict_ids)

    def follows(self, hint: str, reply: str, *, cancel: threading.Event | None = None) -> float:
        """Probability that the reply follows the hint.

        Raises:
            Cancelled: `cancel` was set before it was done.
        """
        logprobs = self._read(follows_prompt(hint, reply), self._answer_ids, cancel)
        return float(np.exp(logprobs[ANSWERS.index("yes")]))

    def _read(self, prompt: str, choices: list[int], cancel: threading.Event | None) -> Floats:
        logits = self._engine.next_logits([], self._engine.tokenize(prompt), cancel=cancel)
        return log_softmax(np.asarray(logits)[choices])
