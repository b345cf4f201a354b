"""Few-shot scoring: what the base model reads from a next message. It must never decide: `judge` does.

The prompt shows next messages only. With the reply beside it, measured on the embedded model, the verdicts were no
better and took twice as long: small models read the message, and the reply distracts them.
"""

from __future__ import annotations

import json
import threading
from importlib import resources
from typing import Any

import numpy as np

from ..engine.base import Engine
from .calibration import VERDICTS, Floats, log_softmax, prior_of

MAX_WORDS = 80
"""Longer messages lose their middle: how it takes the reply is said at the beginning or the end."""


def shorten(text: str, words: int = MAX_WORDS) -> str:
    """One line of at most `words` words, the middle left out. Text without spaces counts four characters a word."""
    found = text.split()
    if len(found) > words:
        head = words * 2 // 3
        found = [*found[:head], "...", *found[head - words :]]
    line = " ".join(found)
    limit = words * 12
    return line if len(line) <= limit else f"{line[: limit * 2 // 3]} ... {line[-limit // 3 :]}"


def raw() -> str:
    """The examples' file as text, for the judge's version."""
    return resources.files("claw_local.data").joinpath("judge_fewshot.json").read_text("utf-8")


class FewShot:
    """The few-shot prompt on one engine. Its KV is kept by the engine, so that a case costs only its own tokens."""

    def __init__(self, engine: Engine) -> None:
        data: dict[str, Any] = json.loads(raw())
        self._engine = engine
        self._labels: dict[str, str] = data["labels"]
        words: dict[str, str] = data["verdicts"]
        lines = [data["instruction"], ""]
        for example in data["examples"]:
            lines += [f"{self._case(example['next'])} {words[example['verdict']]}", ""]
        self._prefix = engine.tokenize("\n".join(lines) + "\n")
        self._verdict_ids = [engine.tokenize(f" {words[verdict]}")[0] for verdict in VERDICTS]
        self._content_free: list[str] = data["content_free"]
        self._prior: Floats | None = None

    def _case(self, message: str) -> str:
        return f"{self._labels['message']}: {shorten(message)}\n{self._labels['verdict']}:"

    def logprobs(self, message: str, *, cancel: threading.Event | None = None) -> Floats:
        """[3] log-probabilities of the verdict words good, neutral, bad after this message, in nats.

        Raises:
            Cancelled: `cancel` was set before it was done.
        """
        suffix = self._engine.tokenize(self._case(message))
        logits = self._engine.next_logits(self._prefix, suffix, cancel=cancel)
        result: Floats = log_softmax(np.asarray(logits))[self._verdict_ids]
        return result

    def prompt(self, message: str) -> tuple[list[int], list[int]]:
        """[T] tokens of the whole prompt, and [3] the token of each verdict word."""
        return [*self._prefix, *self._engine.tokenize(self._case(message))], list(self._verdict_ids)

    def prior(self, *, cancel: threading.Event | None = None) -> Floats:
        """[3] the prompt's lean, measured once on content-free messages."""
        if self._prior is None:
            self._prior = prior_of([self.logprobs(message, cancel=cancel) for message in self._content_free])
        return self._prior
