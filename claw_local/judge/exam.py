"""The judge's exams: one for each of its two questions, shipped with the package, taken once by each judge.

Where a judge stays under `PASS_AUC`, its word on that question counts nothing (DESIGN §5):

- "next", what the next message says of a reply. A judge that failed is not heard (`unheard`): the words of the message
  are read by rules alone, as checks read a text. One that has not taken the exam yet is heard, since the first
  corrections should not have to wait for it. The exam's cases are plain everyday messages in six languages, a set of
  their own: what has to be right before anything may be learned. How a judge does on hard ones is measured with
  `claw-local judge eval`.
- "follows", whether a reply follows a hint. It is only heard after it passed, with wishes it may have been trained on
  *and* with others: what a check can verify is never put to a judge, so the wishes it is asked about are the others.

An exam must never change the judge, nor look at what the person chatted.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from ..engine.base import Cancelled
from ..store.exams import Exams
from ..store.records import ExamQuestion, ExamRecord
from . import examples
from .evaluation import auc_of, measure
from .verdict import AnyJudge, Verdict

PASS_AUC = 0.9
QUESTIONS: tuple[ExamQuestion, ...] = get_args(ExamQuestion)
SURE = 0.6
"""Least probability of yes or no at which an answer to the second question counts."""
_LEAST = 0.02
"""Shares of votes of 0 and 1 are taken for probabilities this far inside: nobody is that sure."""

Progress = Callable[[int, int], None]
"""Called with how many cases are done, of how many."""


@dataclass(frozen=True)
class Pair:
    """A case of the second question. `seen`: whether wishes like this one are in the shipped training pairs."""

    hint: str
    reply: str
    follows: bool
    wish: str
    seen: bool


@cache
def next_cases() -> tuple[examples.Example, ...]:
    """The exam of the first question."""
    return tuple(examples.parse(_text("exam-next.jsonl"), "exam-next.jsonl"))


@cache
def follows_cases() -> tuple[Pair, ...]:
    """The exam of the second question: the shipped test pairs."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in _text("follows-test.jsonl").splitlines()]
    return tuple(Pair(row["hint"], row["reply"], row["follows"], row["wish"], row["seen"]) for row in rows)


def _text(name: str) -> str:
    return resources.files("claw_local.data").joinpath("judge").joinpath(name).read_text("utf-8")


def find(exams: Exams, judge: AnyJudge, question: ExamQuestion) -> ExamRecord | None:
    """What this judge scored; None if it has not taken that exam."""
    who = judge.identity
    return exams.find(who.model, who.adapter, who.version, question)


def take(
    judge: AnyJudge,
    question: ExamQuestion,
    *,
    on_progress: Progress | None = None,
    cancel: threading.Event | None = None,
) -> ExamRecord:
    """Hold one exam. Nothing is kept of it here: `Exams.put` does that.

    Raises:
        Cancelled: `cancel` was set. JudgeError, EngineError, ModelError: the judge failed in the middle; it has not
            taken the exam then.
    """
    started = time.perf_counter()
    count = len(next_cases() if question == "next" else follows_cases())
    done = 0

    def one_more() -> None:
        nonlocal done
        done += 1
        if cancel is not None and cancel.is_set():
            raise Cancelled
        if on_progress is not None:
            on_progress(done, count)

    measured = (_take_next if question == "next" else _take_follows)(judge, one_more, cancel)
    auc, accuracy, threshold, groups = measured
    who = judge.identity
    needed = [auc, *(groups[name] for name in ("seen", "unseen") if name in groups)]
    return ExamRecord(
        model=who.model,
        adapter=who.adapter,
        version=who.version,
        question=question,
        auc=round(auc, 4),
        accuracy=round(accuracy, 4),
        threshold=round(threshold, 4),
        examples=count,
        passed=all(one is not None and one >= PASS_AUC for one in needed),
        groups={name: None if one is None else round(one, 4) for name, one in groups.items()},
        seconds_per_example=round((time.perf_counter() - started) / count, 4),
    )


_Measured = tuple[float, float, float, dict[str, float | None]]


def _take_next(judge: AnyJudge, one_more: Callable[[], None], cancel: threading.Event | None) -> _Measured:
    cases, verdicts = next_cases(), list[Verdict]()
    for case in cases:
        verdicts.append(judge.judge(case.question, case.reply, case.next, cancel=cancel))
        one_more()
    overall = measure(cases, verdicts)
    groups = {}
    for language in dict.fromkeys(case.lang for case in cases):
        places = [n for n, case in enumerate(cases) if case.lang == language]
        groups[language] = measure([cases[n] for n in places], [verdicts[n] for n in places]).auc
    return overall.auc or 0.0, overall.accuracy, 0.5, groups


def _take_follows(judge: AnyJudge, one_more: Callable[[], None], cancel: threading.Event | None) -> _Measured:
    cases, said = follows_cases(), list[float]()
    for case in cases:
        said.append(judge.follows(case.hint, case.reply, cancel=cancel))
        one_more()
    labels = [case.follows for case in cases]

    def auc(places: Sequence[int]) -> float | None:
        right, wrong = ([said[n] for n in places if labels[n] == label] for label in (True, False))
        return auc_of(right, wrong)

    groups = {
        "seen": auc([n for n, case in enumerate(cases) if case.seen]),
        "unseen": auc([n for n, case in enumerate(cases) if not case.seen]),
    }
    for wish in dict.fromkeys(case.wish for case in cases):
        groups[wish] = auc([n for n, case in enumerate(cases) if case.wish == wish])
    threshold, accuracy = best_threshold(said, labels)
    return auc(range(len(cases))) or 0.0, accuracy, threshold, groups


def best_threshold(said: Sequence[float], labels: Sequence[bool]) -> tuple[float, float]:
    """(threshold, balanced accuracy) that best tells right from wrong, in the middle of its gap (Youden 1950)."""
    values, marks = np.asarray(said), np.asarray(labels)
    levels = np.unique(values)
    best = (0.5, 0.0)
    for threshold in [(low + high) / 2 for low, high in pairwise(levels)] or [0.5]:
        yes = values > threshold
        share = float((yes[marks].mean() + (~yes[~marks]).mean()) / 2) if marks.any() and (~marks).any() else 0.0
        if share > best[1]:
            best = (float(threshold), share)
    return best


def answer(probability: float, threshold: float) -> bool | None:
    """Yes or no by a probability of "yes", with the exam's threshold as the middle; None where that is not sure.

    The threshold takes off the judge's lean: log-odds(p) - log-odds(threshold) are the log-odds that count.
    """
    p, middle = (min(max(value, _LEAST), 1 - _LEAST) for value in (probability, threshold))
    odds = p / (1 - p) * (1 - middle) / middle
    yes = odds / (1 + odds)
    return None if max(yes, 1 - yes) < SURE else yes > 0.5
