"""How good a judge is, measured on labelled examples. It must never change the judge, nor know what people chatted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .calibration import SCORES, VERDICTS
from .examples import Example
from .verdict import AnyJudge, Verdict

BINS = 10
"""Bins of the calibration error, equally wide from 0 to 1."""
LEAST_PROBABILITY = 1e-4
"""Probabilities come rounded to four digits; below this, two of them cannot be told apart."""

Progress = Callable[[int, int], None]
"""Called with how many examples are judged, of how many."""


@dataclass(frozen=True)
class Measures:
    """What was measured on some examples.

    Attributes:
        examples: how many.
        accuracy: share whose verdict (-1, 0, +1, abstentions as 0) is the label.
        auc: how often a good example ranks above a bad one by the odds of "good" to "bad", a tie counting half; None
            where there is only one sort. Neutral examples do not count.
        calibration_error: expected calibration error: over ten equally wide bins of the likeliest verdict's
            probability, the mean distance between that probability and how often the verdict is right, weighted by
            the bins' sizes (Guo et al., arXiv 1706.04599).
        confusion: counts, by label and then by verdict: `confusion["-1"]["1"]` are bad ones that were taken for good.
    """

    examples: int
    accuracy: float
    auc: float | None
    calibration_error: float
    confusion: dict[str, dict[str, int]]


@dataclass(frozen=True)
class HintMeasures:
    """Which messages of people were seen to say how the reply should have been.

    Attributes:
        directives: how many do, by their labels.
        precision, recall: of seeing that; None where nothing was found, or nothing was there to be found.
        kept: share of the directives of which a hint passed every filter.
    """

    directives: int
    precision: float | None
    recall: float | None
    kept: float | None


@dataclass(frozen=True)
class Miss:
    """An example that was judged wrongly."""

    id: str
    lang: str
    situation: str
    next: str
    score: int
    verdict: int
    probabilities: dict[str, float]


@dataclass(frozen=True)
class Evaluation:
    """A judge on a set of examples.

    Attributes:
        overall, by_language, by_situation: the measures; "situation" is the sort of message where examples name it.
        hints: of the examples in which a person came next.
        seconds_per_example: mean time of one judgement, after a first one that is not counted: the prompt's prefix and
            its lean are computed once.
        judge_version: which examples, words and rules judged.
        wrong: the examples judged wrongly.
    """

    overall: Measures
    by_language: dict[str, Measures]
    by_situation: dict[str, Measures]
    hints: HintMeasures
    seconds_per_example: float
    judge_version: str
    wrong: list[Miss]


def evaluate(
    judge: AnyJudge,
    examples: Sequence[Example],
    *,
    on_progress: Progress | None = None,
    cancel: threading.Event | None = None,
) -> Evaluation:
    """Judge every example and compare.

    Raises:
        Cancelled: `cancel` was set before it was done.
    """
    if not examples:
        raise ValueError("no examples")
    judge.judge("", "", "hello", cancel=cancel)
    verdicts: list[Verdict] = []
    taken_s = 0.0
    for number, example in enumerate(examples, start=1):
        started = time.perf_counter()
        verdicts.append(
            judge.judge(example.question, example.reply, example.next, next_role=example.next_role, cancel=cancel)
        )
        taken_s += time.perf_counter() - started
        if on_progress is not None:
            on_progress(number, len(examples))
    return Evaluation(
        overall=measure(examples, verdicts),
        by_language=_grouped([example.lang for example in examples], examples, verdicts),
        by_situation=_grouped([example.sort for example in examples], examples, verdicts),
        hints=measure_hints(examples, verdicts),
        seconds_per_example=taken_s / len(examples),
        judge_version=verdicts[0].version,
        wrong=[
            Miss(
                example.id,
                example.lang,
                example.sort,
                example.next,
                example.score,
                verdict.score,
                verdict.probabilities,
            )
            for example, verdict in zip(examples, verdicts, strict=True)
            if verdict.score != example.score
        ],
    )


def measure(examples: Sequence[Example], verdicts: Sequence[Verdict]) -> Measures:
    """Compare verdicts with labels."""
    pairs = list(zip(examples, verdicts, strict=True))
    scores = sorted(SCORES.values())
    counts = Counter((example.score, verdict.score) for example, verdict in pairs)
    return Measures(
        examples=len(pairs),
        accuracy=sum(counts[score, score] for score in scores) / len(pairs),
        auc=_auc(pairs),
        calibration_error=_calibration_error(pairs),
        confusion={str(label): {str(score): counts[label, score] for score in scores} for label in scores},
    )


def measure_hints(examples: Sequence[Example], verdicts: Sequence[Verdict]) -> HintMeasures:
    """Compare which messages were seen as directives with their labels. Tools' outcomes do not count."""
    pairs = [pair for pair in zip(examples, verdicts, strict=True) if pair[0].next_role == "user"]
    labelled = sum(example.directive for example, _ in pairs)
    found = sum(verdict.directive for _, verdict in pairs)
    both = sum(example.directive and verdict.directive for example, verdict in pairs)
    kept = sum(example.directive and bool(verdict.hint) for example, verdict in pairs)
    return HintMeasures(
        directives=labelled,
        precision=both / found if found else None,
        recall=both / labelled if labelled else None,
        kept=kept / labelled if labelled else None,
    )


def auc_of(right: Sequence[float], wrong: Sequence[float]) -> float | None:
    """How often a right case ranks above a wrong one, a tie counting half (Mann-Whitney); None without both sorts."""
    if not len(right) or not len(wrong):
        return None
    above, below = np.asarray(right)[:, None], np.asarray(wrong)[None, :]  # [right, 1], [1, wrong]
    return float(np.mean((above > below) + 0.5 * (above == below)))


def _grouped(keys: Sequence[str], examples: Sequence[Example], verdicts: Sequence[Verdict]) -> dict[str, Measures]:
    groups: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    return {
        key: measure([examples[n] for n in places], [verdicts[n] for n in places])
        for key, places in sorted(groups.items())
    }


def _auc(pairs: Sequence[tuple[Example, Verdict]]) -> float | None:
    """Mann-Whitney: over all pairs of a good and a bad example."""
    good, bad = ([_odds(verdict) for example, verdict in pairs if example.score == score] for score in (1, -1))
    return auc_of(good, bad)


def _odds(verdict: Verdict) -> float:
    """Log-odds of good to bad, in nats."""
    good, bad = (verdict.probabilities[name] + LEAST_PROBABILITY for name in ("good", "bad"))
    return float(np.log(good / bad))


def _calibration_error(pairs: Sequence[tuple[Example, Verdict]]) -> float:
    likeliest = [max(VERDICTS, key=lambda name: verdict.probabilities[name]) for _, verdict in pairs]
    sure = np.array([verdict.probabilities[name] for (_, verdict), name in zip(pairs, likeliest, strict=True)])
    right = np.array([example.score == SCORES[name] for (example, _), name in zip(pairs, likeliest, strict=True)])
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    error = 0.0
    for number in range(BINS):
        inside = bins == number
        if inside.any():
            error += inside.mean() * abs(float(sure[inside].mean()) - float(right[inside].mean()))
    return float(error)
