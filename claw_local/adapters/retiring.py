"""Which hints an adapter has learned, so that they leave the prompt, and their return when it goes out of use.

It must never compute with a model: it reads what the gate measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..signals.checks import Check, infer_checks, score
from ..store import AdapterRecord, Hint, Store
from .gate import Probe

LEARNED = 0.9
"""Least share of answers without the hint that must keep its wish."""
BEHIND_THE_PROMPT = 0.05
"""Most that this share may be behind the adapter before it, told the hint in its prompt."""


@dataclass(frozen=True)
class Retention:
    """How well one hint is followed without standing in the prompt.

    Attributes:
        told: share of answers that keep it with the hints in the prompt, before.
        untold: share of the candidate's answers that keep it without them.
        learned: whether it may leave the prompt.
    """

    hint_id: int
    text: str
    told: float
    untold: float
    learned: bool


def retention(hints: Sequence[Hint], probes: Sequence[Probe]) -> list[Retention]:
    """Each hint that checks can verify. One that they cannot, or only roughly, is not in the list: it stays in the
    prompt."""
    found = []
    untold_texts = [(text, probe.question) for probe in probes for text in (probe.answers_after or (probe.after,))]
    told_texts = [(probe.hinted, probe.question) for probe in probes if probe.hinted]
    for hint in hints:
        checks = infer_checks([hint.text])
        if hint.scope != "everywhere" or any(check.rough for check in checks):
            continue
        told, untold = _share(told_texts, checks), _share(untold_texts, checks)
        if told is None or untold is None:
            continue
        learned = untold >= max(LEARNED, told - BEHIND_THE_PROMPT)
        found.append(Retention(hint.id, hint.text, round(told, 3), round(untold, 3), learned))
    return found


def _share(answers: Sequence[tuple[str, str]], checks: Sequence[Check]) -> float | None:
    """Of (answer, question), how many keep the checks; None where none of the questions can tell."""
    scores = [found for text, question in answers if (found := score(text, checks, question)) is not None]
    return sum(found == 1.0 for found in scores) / len(scores) if scores else None


def settle(store: Store, record: AdapterRecord | None) -> None:
    """Make the hints' states fit the adapter that is now in use (None: the base): what it has learned is out of the
    prompt, everything else that holds is in it. Dropped hints stay dropped."""
    learned = set(record.metrics.get("learned_hints", ())) if record is not None else set()
    with store.database.write():
        for hint in store.hints.list(state=None):
            if hint.state == "active" and hint.id in learned:
                store.hints.set_state(hint.id, "consolidated")
            elif hint.state == "consolidated" and hint.id not in learned:
                store.hints.set_state(hint.id, "active")
