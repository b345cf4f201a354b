"""Why the judge says what it says of one reply, part by part. It must never decide anything itself: `judge` does."""

from __future__ import annotations

from dataclasses import dataclass

from ..signals.attached import own_words
from . import words
from .calibration import VERDICTS
from .filters import FILTERS
from .judge import Judge, Verdict

PATTERNS = {"wish": "request", "new_subject": "question_start"}
"""Groups of words whose name is not that of their weight."""


@dataclass(frozen=True)
class Counted:
    """Words that counted beside the model.

    Attributes:
        name: what they were taken for.
        words: where they stand in the message, "" if it is the message as a whole.
        verdict: what they speak for.
        nats: how strongly.
    """

    name: str
    words: str
    verdict: str
    nats: float


@dataclass(frozen=True)
class Explanation:
    """One judgement, part by part.

    Attributes:
        verdict: what the judge says.
        logprobs: by verdict, what the model says after the message, in nats; None where it was not asked.
        prior: by verdict, what it says after content-free messages: the lean that is taken off.
        counted: the words that counted beside it.
        filters: by name, whether the hint the message holds passes; empty if it holds none.
    """

    verdict: Verdict
    logprobs: dict[str, float] | None
    prior: dict[str, float] | None
    counted: list[Counted]
    filters: dict[str, bool]


def explain(judge: Judge, question: str, reply: str, next_text: str, next_role: str = "user") -> Explanation:
    """Judge `reply` by what followed it, and say what that comes of."""
    verdict = judge.judge(question, reply, next_text, next_role=next_role)
    question, next_text = own_words(question), own_words(next_text)
    if next_role != "user" or not next_text.strip():
        return Explanation(verdict, None, None, [], {})
    reading = judge.read(question, reply, next_text)
    return Explanation(
        verdict=verdict,
        logprobs={name: float(value) for name, value in zip(VERDICTS, reading.logprobs, strict=True)},
        prior={name: float(value) for name, value in zip(VERDICTS, reading.prior, strict=True)},
        counted=counted(question, reply, next_text),
        filters={name: name not in verdict.filters for name in FILTERS} if verdict.candidate else {},
    )


def counted(question: str, reply: str, message: str) -> list[Counted]:
    """The groups of words that speak in a message, the strongest first."""
    weights = words.data()["weights"]
    found = []
    for name, strength in words.features(question, reply, message).items():
        if strength:
            verdict, weight = weights[name]
            found.append(Counted(name, _where(name, words.tidy(message)), verdict, weight * strength))
    return sorted(found, key=lambda one: -one.nats)


def _where(name: str, text: str) -> str:
    if name == "repeat":
        return ""
    if name == "praise":
        places = words.find_praise(text)
    else:
        places = list(words.pattern(PATTERNS.get(name, name)).finditer(text))
    return ", ".join(dict.fromkeys(place.group().strip() for place in places if place.group().strip()))
