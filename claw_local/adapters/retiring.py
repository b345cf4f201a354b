"""Which hints an adapter has learned, so that they leave the prompt, and their return when it goes out of use.

It must never compute with a model: it reads what the gate measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..signals.checks import infer_checks
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
    """Each hint that checks can verify. One that they cannot is not in the list: it stays in the prompt."""
    found = []
    untold_texts = [text for probe in probes for text in (probe.answers_after or (probe.after,))]
    told_texts = [probe.hinted for probe in probes if probe.hinted]
    for hint in hints:
        checks = infer_checks([hint.text])
        if not checks or not told_texts or hint.scope != "everywhere":
            continue
        told, untold = (
            sum(bool(text.strip()) and all(check.passes(text) for check in checks) for text in texts) / len(texts)
            for texts in (told_texts, untold_texts)
        )
        learned = untold >= max(LEARNED, told - BEHIND_THE_PROMPT)
        found.append(Retention(hint.id, hint.text, round(told, 3), round(untold, 3), learned))
    return found


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
