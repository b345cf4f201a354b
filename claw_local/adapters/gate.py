"""The gate's decision: from what was measured of two adapters to accepted or not, and why.

It must never compute with a model: it reads measurements. Bounds and reasons: DESIGN §6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..settings import GateSettings

BOOTSTRAPS = 2000
CLEARLY_WORSE = -0.1
"""How much the checks' mean score may fall where it is not the reason to accept."""


@dataclass(frozen=True)
class Probe:
    """One question put to both adapters.

    Attributes:
        question: the person's words, or a shipped neutral prompt.
        held_out: whether it is one of the person's own turns.
        before, after: answers of the adapter in use and of the candidate, without hints.
        divergence_before, divergence_after: KL(teacher ‖ adapter), nats per token, on the teacher's answer, the teacher
            being the adapter in use with the hints in its prompt; None without hints.
        score_before, score_after: the checks' score of the answers, -1 to +1; None without checks.
        margin: score × (mean token log-probability under the candidate - under the adapter in use) of the person's
            judged reply, in nats; None where there is none.
    """

    question: str
    held_out: bool
    before: str
    after: str
    divergence_before: float | None = None
    divergence_after: float | None = None
    score_before: float | None = None
    score_after: float | None = None
    margin: float | None = None


@dataclass(frozen=True)
class Interval:
    """A mean of paired differences with its bootstrap interval, over `count` turns."""

    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class GateReport:
    """The gate's word, in figures and in sentences.

    Attributes:
        accepted: whether the candidate may go live.
        reason: why, in one sentence.
        gains: what improved or not: paired differences, candidate minus adapter in use, positive is better.
        length_ratio: mean words of the candidate's answers over those of the adapter in use.
        kl_base: mean KL(candidate ‖ base) on the guard prompts, nats per token.
        repetition_before, repetition_after: mean share of repeated 4-grams.
        empty_after: how many of the candidate's answers are empty.
        examples: three questions with the answers before and after.
    """

    accepted: bool
    reason: str
    gains: dict[str, Interval]
    length_ratio: float
    kl_base: float
    repetition_before: float
    repetition_after: float
    empty_after: int
    probes: int
    held_out: int
    bounds: dict[str, float]
    examples: list[dict[str, str]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def as_markdown(self) -> str:
        """The report for a person to read."""
        lines = [
            f"# Gate: {'accepted' if self.accepted else 'not accepted'}",
            "",
            self.reason,
            "",
            f"Measured on {self.probes} questions, {self.held_out} of them your own that it never trained on.",
            "",
            "| what | change | interval | on |",
            "|---|---|---|---|",
        ]
        for name, gain in self.gains.items():
            lines.append(f"| {GAINS[name]} | {gain.mean:+.3f} | {gain.low:+.3f} to {gain.high:+.3f} | {gain.count} |")
        lines += [
            "",
            f"- Length of answers: {self.length_ratio:.2f} of before (at least {self.bounds['min_length_ratio']:.2f})",
            f"- Distance from the base: {self.kl_base:.3f} nats a token (at most {self.bounds['max_kl_base']:.2f})",
            f"- Repetition: {self.repetition_after:.1%}, before {self.repetition_before:.1%}",
            f"- Empty answers: {self.empty_after}",
        ]
        for example in self.examples:
            lines += ["", f"## {example['question']}", "", "Before:", ""]
            lines += [f"> {line}" for line in example["before"].splitlines()]
            lines += ["", "After:", ""]
            lines += [f"> {line}" for line in example["after"].splitlines()]
        return "\n".join(lines) + "\n"


GAINS = {
    "divergence": "closer to how it answers when told your wishes (nats a token)",
    "checks": "answers keep your wishes by themselves (score from -1 to 1)",
    "margin": "prefers what you liked over what you did not (nats a token)",
}


def decide(probes: Sequence[Probe], *, kl_base: float, length_wished: bool, bounds: GateSettings) -> GateReport:
    """Compare the candidate with the adapter in use.

    It is accepted if at least one gain's interval lies above zero, none is clearly worse, and every bound holds.

    Args:
        probes: the questions put to both.
        kl_base: KL(candidate ‖ base) on the guard prompts, nats per token.
        length_wished: whether the person wished for shorter answers; the bound on length does not hold then.
    """
    gains = _gains(probes, bounds.confidence)
    words_before = float(np.mean([len(probe.before.split()) for probe in probes])) if probes else 0.0
    words_after = float(np.mean([len(probe.after.split()) for probe in probes])) if probes else 0.0
    length_ratio = words_after / words_before if words_before else 1.0
    repetition_before = float(np.mean([repetition(probe.before) for probe in probes])) if probes else 0.0
    repetition_after = float(np.mean([repetition(probe.after) for probe in probes])) if probes else 0.0
    empty_after = sum(not probe.after.strip() for probe in probes)
    empty_before = sum(not probe.before.strip() for probe in probes)
    better = [name for name, gain in gains.items() if gain.low > 0]
    worse = [name for name, gain in gains.items() if gain.high < 0 or (name == "checks" and gain.mean < CLEARLY_WORSE)]
    refusals = []
    if not gains:
        refusals.append("there is nothing yet to measure it on; more feedback will change that")
    elif not better:
        refusals.append("it follows your wishes no better than before, as far as can be told")
    if worse:
        refusals.append(f"it became worse at this: {'; '.join(GAINS[name] for name in worse)}")
    if length_ratio < bounds.min_length_ratio and not length_wished:
        refusals.append(f"its answers are only {length_ratio:.2f} as long, which nobody asked for")
    if not kl_base <= bounds.max_kl_base:
        refusals.append(f"it moved too far from the base model ({kl_base:.2f} nats a token)")
    if repetition_after > repetition_before + bounds.max_repetition:
        refusals.append(f"it repeats itself ({repetition_after:.0%} of its phrases, {repetition_before:.0%} before)")
    if empty_after > empty_before:
        refusals.append(f"{empty_after} of its answers are empty")
    reason = f"Not taken: {'; '.join(refusals)}." if refusals else f"Taken: {_praise(gains, better)}."
    return GateReport(
        accepted=not refusals,
        reason=reason,
        gains=gains,
        length_ratio=length_ratio,
        kl_base=kl_base,
        repetition_before=repetition_before,
        repetition_after=repetition_after,
        empty_after=empty_after,
        probes=len(probes),
        held_out=sum(probe.held_out for probe in probes),
        bounds={
            "min_length_ratio": 0.0 if length_wished else bounds.min_length_ratio,
            "max_kl_base": bounds.max_kl_base,
            "max_repetition": bounds.max_repetition,
            "confidence": bounds.confidence,
        },
        examples=_examples(probes),
    )


def bootstrap(differences: Sequence[float], confidence: float, seed: int = 0) -> Interval:
    """Mean of paired differences with its percentile bootstrap interval (Efron 1979).

    One difference alone has no spread to draw from: its interval reaches from minus to plus infinity.
    """
    values = np.asarray(differences, dtype=np.float64)
    if len(values) < 2:
        return Interval(float(values.mean()), float("-inf"), float("inf"), len(values))
    draws = np.random.default_rng(seed).integers(0, len(values), (BOOTSTRAPS, len(values)))
    means = values[draws].mean(axis=1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(values.mean()), float(low), float(high), len(values))


def repetition(text: str, n: int = 4) -> float:
    """Share of a text's word n-grams that stood in it before; 0 for a text too short to have two."""
    words = text.lower().split()
    grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if len(grams) > 1 else 0.0


def _gains(probes: Sequence[Probe], confidence: float) -> dict[str, Interval]:
    differences = {
        "divergence": [
            probe.divergence_before - probe.divergence_after
            for probe in probes
            if probe.divergence_before is not None and probe.divergence_after is not None
        ],
        "checks": [
            probe.score_after - probe.score_before
            for probe in probes
            if probe.score_after is not None and probe.score_before is not None
        ],
        "margin": [probe.margin for probe in probes if probe.margin is not None],
    }
    return {name: bootstrap(values, confidence) for name, values in differences.items() if values}


def _praise(gains: dict[str, Interval], better: Sequence[str]) -> str:
    return "; ".join(f"{GAINS[name]}, {gains[name].mean:+.2f} on {gains[name].count} questions" for name in better)


def _examples(probes: Sequence[Probe]) -> list[dict[str, str]]:
    # The person's own questions first, and of those the ones where most changed.
    def changed(probe: Probe) -> tuple[bool, float]:
        return (probe.held_out, abs((probe.score_after or 0.0) - (probe.score_before or 0.0)))

    ranked = sorted(probes, key=changed, reverse=True)
    return [{"question": p.question, "before": p.before, "after": p.after} for p in ranked[:3]]
