"""Asking the gate: what it is asked, and its word on an adapter that was not trained just now.

It must never train, and never put anything into use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ..engine.base import AdapterSlot, Engine, Message, Sampling
from ..errors import AdapterError
from ..files import write_whole
from ..language import _
from ..memory import fast, likes
from ..settings import Settings
from ..signals import turns
from ..signals.checks import Check
from ..store import AdapterRecord, Store
from . import gate, guarding, measuring, retiring
from .lessons import Lesson, lasting_hints, lessons_of
from .registry import not_forgotten, slots

Report = Callable[[float, str], None]

PROBES = 18
"""Most questions the gate asks; the person's own come first."""
LOOKS = 2
"""Times that the gate may look at what it knows and decide."""
SHOWN = 4
"""Questions still asked where something is lost already, so that the report has answers to show."""


def fresh_sampling(settings: Settings) -> Sampling:
    """As the person's replies are drawn, but no longer than a fresh answer may be."""
    values = {**settings.sampling.model_dump(), "max_tokens": settings.learning.rollout_tokens}
    return Sampling(**values, seed=settings.learning.seed)


class Examiner:
    """Asks the gate's questions about candidates for the same adapter in use.

    What must not get lost comes first: where it is lost, a few answers are asked for, to show, and no more. Then one
    answer to each question, and the divergence on half of them: mostly that decides. Where it does not, as much again.
    """

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        held_out: Sequence[Lesson],
        hints: Sequence[str],
        checks: Sequence[Check],
        *,
        current: Sequence[AdapterSlot],
    ) -> None:
        """Get the questions ready; nothing is asked yet.

        Args:
            held_out: the person's own turns, which no candidate has trained on.
            hints, checks: the wishes that hold now, and what they and the person's reactions come down to.
            current: the adapter in use.
        """
        self._engine, self._bounds, self._checks, self._current = engine, settings.gate, list(checks), list(current)
        self._sampling = fresh_sampling(settings)
        self._comparison = measuring.Comparison(
            engine,
            _questions(engine, held_out, hints),
            current=current,
            checks=checks,
            sampling=self._sampling,
        )
        self._hints = list(hints)
        self._guarded: guarding.Guarded | None = None
        self._kl_told: float | None = None

    def ask(
        self, candidate: Sequence[AdapterSlot], report: Report = lambda fraction, words: None
    ) -> tuple[gate.GateReport, list[gate.Probe]]:
        """Put the questions to the adapter in use and to the candidate, and decide. Leaves the engine with the base.

        Args:
            report: told the share that is done and in a few words what is being done.
        """
        report(0.0, _("what must not get lost"))
        guard = self._guard(candidate)
        after, count = measuring.Side(), len(self._comparison.questions)
        cut_short = gate.lost(guard, self._bounds)
        probes: list[gate.Probe] = []
        verdict: gate.GateReport | None = None
        for look in range(1 if cut_short else LOOKS):
            done = 0.2 + 0.4 * look
            probes = self._comparison.probes(
                candidate,
                after,
                answers=look + 1 if self._checks else 1,
                divergences=0 if cut_short else count * (look + 1) // LOOKS,
                questions=SHOWN if cut_short else None,
                report=lambda fraction, words, done=done: report(done + 0.4 * fraction, words),  # type: ignore[misc]
            )
            verdict = gate.decide(
                probes,
                guard=guard,
                bounds=self._bounds,
                wished={check.family for check in self._checks},
                wishes=[check.describe() for check in self._checks],
                looks=LOOKS,
                cut_short=cut_short,
            )
            if verdict.settled:
                break
        assert verdict is not None
        self._engine.set_adapters([])
        report(1.0, _("done"))
        return verdict, probes

    def _guard(self, candidate: Sequence[AdapterSlot]) -> gate.Guard:
        if self._guarded is None:
            self._guarded = guarding.guarded(self._engine, self._current, self._sampling)
        after = guarding.guarded(self._engine, candidate, self._sampling)
        guard = guarding.guard(self._engine, self._guarded, after, candidate)
        far = guard.kl_base > self._bounds.max_kl_base
        if far and self._hints and not gate.lost(replace(guard, kl_base=0.0), self._bounds):
            # Some wishes ("all in lowercase") move every word: then that is how far it may go.
            if self._kl_told is None:
                self._kl_told = guarding.told_shift(self._engine, self._current, self._hints, self._sampling)
            guard = replace(guard, kl_told=self._kl_told)
        return guard


def _questions(engine: Engine, held_out: Sequence[Lesson], hints: Sequence[str]) -> list[measuring.Question]:
    """The person's own turns, then shipped neutral prompts, up to `PROBES`."""
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
    return questions


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
    """One candidate: see `Examiner`."""
    return Examiner(settings, engine, held_out, hints, checks, current=current).ask(candidate, report)


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
        raise AdapterError(
            _("The report cannot be written to {folder}: {error}.", folder=folder, error=error.strerror or error)
        ) from error
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
    report(1.0, _("done"))
    return verdict
