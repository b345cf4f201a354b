"""From the settings to the judge: which model judges, how it is asked, and whether its word counts.

It must never open a model: whoever has one gives it.
"""

from __future__ import annotations

from ..engine.base import ChatEngine, has_tokens
from ..settings import JudgeSettings
from ..store import Store
from . import exam
from .judge import Judge
from .personal import JudgeAdapters, adapters_of
from .unheard import UnheardJudge
from .verdict import AnyJudge
from .voting import VOTES, VotingJudge

CAPABLE = 1_000_000_000
"""Weights from which a model may put a wish into words of its own: smaller ones write beside the point."""


def make_judge(
    engine: ChatEngine,
    settings: JudgeSettings,
    store: Store | None,
    *,
    adapters: JudgeAdapters | None = None,
    examining: bool = False,
) -> AnyJudge:
    """The judge on this engine. A model in this process gets its judge's adapters set.

    Args:
        store: where exams and the person's own judge's adapter are kept; None: there are none.
        adapters: to judge with; None: those that the settings, the package and the store have for the model.
        examining: it is about to take an exam, so it is heard whatever it scored in one before.

    Raises:
        AdapterError: an adapter is missing or does not fit.
    """
    may_write = settings.writes_hints == "on" or (
        settings.writes_hints == "auto" and (not has_tokens(engine) or engine.info.parameters >= CAPABLE)
    )
    judge = _make(engine, settings, store, adapters, may_write)
    taken = exam.find(store.exams, judge, "next") if store is not None and not examining else None
    return judge if taken is None or taken.passed else UnheardJudge(judge, confidence=settings.confidence)


def _make(
    engine: ChatEngine, settings: JudgeSettings, store: Store | None, adapters: JudgeAdapters | None, may_write: bool
) -> AnyJudge:
    found = JudgeAdapters()
    if has_tokens(engine):
        if adapters is not None:
            found = adapters
        elif settings.adapter or not settings.votes:  # The shipped one, and the person's own, were never asked to vote.
            found = adapters_of(engine.info.sha256, settings, store)
        engine.set_judge_adapters(found.slots)
        if not settings.votes:
            return Judge(
                engine,
                trained=found.trained,
                confidence=settings.confidence,
                adapter=found.sha256,
                timeout_s=settings.timeout_s,
                writes_hints=may_write,
            )
    return VotingJudge(
        engine,
        votes=settings.votes or VOTES,
        confidence=settings.confidence,
        timeout_s=settings.timeout_s,
        adapter=found.sha256,
        writes_hints=may_write,
    )
