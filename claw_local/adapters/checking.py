"""Asking the gate: what it is asked, and its word on an adapter that was not trained just now.

It must never train, and never put anything into use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from ..engine.base import AdapterSlot, Engine, Message, Sampling
from ..errors import AdapterError
from ..files import write_whole
from ..memory import fast, likes
from ..settings import Settings
from ..signals import turns
from ..signals.checks import Check
from ..store import AdapterRecord, Store
from . import gate, measuring, retiring
from .lessons import Lesson, lasting_hints, lessons_of
from .registry import not_forgotten, slots

Report = Callable[[float, str], None]

LENGTH_CHECKS = frozenset({"max_sentences", "max_words", "min_words", "min_sentences"})
PROBES = 18
"""Most questions the gate asks; the person's own come first."""


def fresh_sampling(settings: Settings) -> Sampling:
    """As the person's replies are drawn, but no longer than a fresh answer may be."""
    values = {**settings.sampling.model_dump(), "max_tokens": settings.learning.rollout_tokens}
    return Sampling(**values, seed=settings.learning.seed)


def ask_gate(
    settings: Settings,
    engine: Engine,
    held_out: Sequence[Lesson],
    hints: Sequence[str],
    checks: Sequence[Check],
    *,
    current: Sequence[AdapterSlot],
    candidate: Sequence[AdapterSlot],
    report: Report = lambda fraction, words: None,
) -> tuple[gate.GateReport, list[gate.Probe]]:
    """Put held-out turns and shipped neutral prompts to both adapters, and decide. Leaves the engine with the base.

    Args:
        held_out: the person's own turns, which the candidate never trained on.
        hints, checks: the wishes that hold now, and what they and the person's reactions come down to.
        current, candidate: the adapter in use, and the one in question.
        report: told the share that is done and in a few words what is being done.
    """
    questions = [
        measuring.Question(
            text=lesson.turn.question,
            prompt_ids=lesson.prompt_ids,
            hinted_ids=lesson.hinted_ids,
            held_out=True,
            response_ids=lesson.turn.reply.response_ids,
            score=lesson.turn.score or 0,
        )
        for lesson in held_out[:PROBES]
    ]
    for text in measuring.shipped_prompts("neutral")[: max(0, PROBES - len(questions))]:
        plain = engine.render([Message("user", text)]).token_ids
        hinted = engine.render([Message("user", fast.with_hints(text, hints))]).token_ids if hints else None
        questions.append(measuring.Question(text=text, prompt_ids=plain, hinted_ids=hinted, held_out=False))
    sampling = fresh_sampling(settings)
    probes = measuring.measure(
        engine,
        questions,
        current=current,
        candidate=candidate,
        checks=checks,
        sampling=sampling,
        report=lambda fraction, words: report(0.86 * fraction, words),
    )
    report(0.86, "what must not get lost")
    guard = measuring.measure_guard(engine, current=current, candidate=candidate, sampling=sampling)
    length_wished = any(check.kind in LENGTH_CHECKS for check in checks)
    return gate.decide(probes, guard=guard, length_wished=length_wished, bounds=settings.gate), probes


def check(
    store: Store,
    settings: Settings,
    engine: Engine,
    record: AdapterRecord,
    report: Report = lambda fraction, words: None,
) -> gate.GateReport:
    """Ask the gate about an adapter that is there, an imported one perhaps, and keep its report with the adapter.

    It is compared with the adapter in use; the one in use itself, with the base. What passes becomes a candidate, what
    does not is rejected; which one is in use stays as it is.

    Raises:
        AdapterError: the report cannot be written. EngineError: the engine failed.
    """
    active = store.adapters.active(engine.info.sha256)
    current = None if active is None or active.id == record.id else active
    everything = [turn for turn in turns.pair(store) if turn.reply.model_sha256 == engine.info.sha256]
    everything = [turn for turn in everything if turn.is_lesson or turn.only_turn]
    lasting = lasting_hints(store, engine, settings.memory.budget_tokens) if settings.memory.enabled else []
    hints = [hint.text for hint in lasting]
    liked = likes.likes_of(everything, hints, denied=likes.denied(store))
    trained_on = set(record.lineage)
    unseen = [
        turn for turn in everything if turn.is_lesson and turn.split == "held-out" and turn.reply.id not in trained_on
    ]
    verdict, probes = ask_gate(
        settings,
        engine,
        lessons_of(store, engine, unseen, hints),
        hints,
        [preference.check for preference in liked],
        current=slots(current),
        candidate=slots(record),
        report=report,
    )
    kept = retiring.retention(lasting, probes)
    folder = Path(record.gguf_path).parent
    not_forgotten(store.adapters.get(record.id))  # while the gate was asked: then its report has no place either
    try:
        write_whole(folder / "gate.json", json.dumps(verdict.as_json(), indent=2).encode())
        write_whole(folder / "gate.md", verdict.as_markdown().encode())
    except OSError as error:
        raise AdapterError(f"The report cannot be written to {folder}: {error.strerror or error}.") from error
    with store.database.write():
        now = store.adapters.get(record.id)
        not_forgotten(now)
        metrics = {
            "gate": verdict.as_json(),
            "hints": [asdict(hint) for hint in kept],
            "learned_hints": [hint.hint_id for hint in kept if hint.learned],
        }
        state = now.state if now.state == "active" else "candidate" if verdict.accepted else "rejected"
        now = store.adapters.update(record.id, metrics={**now.metrics, **metrics}, state=state, reason=verdict.reason)
        if now.state == "active":
            retiring.settle(store, now)
    report(1.0, "done")
    return verdict
