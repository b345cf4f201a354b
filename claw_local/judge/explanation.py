"""Why the judge says what it says of one reply, part by part. It must never decide anything itself: `judge` does."""

from __future__ import annotations

from dataclasses import dataclass

from ..signals.attached import own_words
from ..signals.quoted import spoken
from . import phrases, words
from .calibration import VERDICTS
from .filters import FILTERS
from .judge import Judge
from .unheard import UnheardJudge
from .verdict import AnyJudge, Verdict
from .written import WRITTEN_FILTERS

PATTERNS = {"wish": "request", "new_subject": "question_start"}
"""Groups of words whose name is not that of their weight."""

LEARNED = "wording"
"""The name of what was learned from labels, once for each verdict that it speaks for."""


@dataclass(frozen=True)
class Counted:
    """What counted beside the model.

    Attributes:
        name: what the words were taken for; `LEARNED` of what was learned from labels.
        words: where they stand in the message, or which spoke most; "" if it is the message as a whole.
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
        verdict: what the judge says; its `votes`, where it was asked several times.
        logprobs: by verdict, what the model says after the message, in nats; None where it was not asked for them.
        prior: by verdict, what it says after content-free messages: the lean that is taken off.
        counted: the words that counted beside it.
        filters: by name, whether the hint the message holds passes; empty if it holds none.
        heard: whether the model's word counts: not if it failed its exam in this question.
    """

    verdict: Verdict
    logprobs: dict[str, float] | None
    prior: dict[str, float] | None
    counted: list[Counted]
    filters: dict[str, bool]
    heard: bool = True


def explain(
    judge: AnyJudge, question: str, reply: str, next_text: str, next_role: str = "user", *, working: bool = False
) -> Explanation:
    """Judge `reply` by what followed it, and say what that comes of. Raises as `AnyJudge.judge` does."""
    verdict = judge.judge(question, reply, next_text, next_role=next_role, working=working)
    question, next_text = own_words(question), spoken(next_text)
    if next_role != "user" or not next_text.strip():
        return Explanation(verdict, None, None, [], {})
    if isinstance(judge, UnheardJudge):
        return Explanation(
            verdict, None, None, counted(question, reply, next_text, working=working), passed(verdict), heard=False
        )
    if not isinstance(judge, Judge):
        return Explanation(verdict, None, None, [], passed(verdict))
    reading = judge.read(question, reply, next_text, working=working)
    return Explanation(
        verdict=verdict,
        logprobs={name: float(value) for name, value in zip(VERDICTS, reading.logprobs, strict=True)},
        prior={name: float(value) for name, value in zip(VERDICTS, reading.prior, strict=True)},
        counted=counted(question, reply, next_text, judge.words_weight, working=working),
        filters=passed(verdict),
    )


def passed(verdict: Verdict) -> dict[str, bool]:
    """By name, whether a verdict's hint passes each filter there is for it; empty without a hint."""
    if not verdict.candidate:
        return {}
    names = (*FILTERS, *WRITTEN_FILTERS) if verdict.written else FILTERS
    return {name: name not in verdict.filters for name in names}


def counted(question: str, reply: str, message: str, share: float = 1.0, *, working: bool = False) -> list[Counted]:
    """What speaks in a message, the strongest first: groups of words, and its wording over the verdict it fits least.

    Args:
        share: how much of it counts.
        working: see `AnyJudge.judge`.
    """
    weights = words.data()["weights"]
    found = []
    for name, strength in words.features(question, reply, message, working=working).items():
        if strength and share:
            verdict, weight = weights[name]
            found.append(Counted(name, _where(name, words.tidy(message)), verdict, share * weight * strength))
    if share and not working:
        nats = phrases.evidence(question, reply, message)
        for verdict, more in zip(VERDICTS, share * (nats - nats.min()), strict=True):
            if more:
                telling = phrases.shipped().telling(message, verdict)
                found.append(Counted(LEARNED, ", ".join(telling), verdict, float(more)))
    return sorted(found, key=lambda one: -one.nats)


def _where(name: str, text: str) -> str:
    if name == "repeat":
        return ""
    if name == "praise":
        places = words.find_praise(text)
    else:
        places = list(words.pattern(PATTERNS.get(name, name)).finditer(text))
    return ", ".join(dict.fromkeys(place.group().strip() for place in places if place.group().strip()))
