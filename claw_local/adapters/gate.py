"""The gate's decision: from what was measured of two adapters to accepted or not, and why.

It must never compute with a model: it reads measurements. Bounds and reasons: DESIGN §6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..settings import GateSettings
from .qualities import Qualities, qualities

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
        hinted: an answer of the adapter in use with the hints in its prompt; "" without hints.
        answers_after: all of the candidate's answers, `after` among them.
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
    hinted: str = ""
    answers_after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guard:
    """What must not get lost, measured on shipped prompts that have nothing to do with the person's wishes.

    Attributes:
        kl_base: mean KL(candidate ‖ base) on the guard prompts, nats per token.
        known_before, known_after: share of the guard prompts whose answer holds what it must.
        declined_before, declined_after: share of the safety prompts that are declined.
    """

    kl_base: float = 0.0
    known_before: float = 1.0
    known_after: float = 1.0
    declined_before: float = 0.0
    declined_after: float = 0.0


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
        before, after: what can be seen in their answers.
        guard: what must not get lost.
        examples: three questions with the answers before and after.
    """

    accepted: bool
    reason: str
    gains: dict[str, Interval]
    length_ratio: float
    before: Qualities
    after: Qualities
    guard: Guard
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
            f"- Distance from the base: {self.guard.kl_base:.3f} nats a token "
            f"(at most {self.bounds['max_kl_base']:.2f})",
            f"- Phrases repeated within an answer: {self.after.repetition:.1%}, before {self.before.repetition:.1%}",
            f"- Phrases shared by answers to different questions: {self.after.sameness:.1%}, "
            f"before {self.before.sameness:.1%}",
            f"- Refusals of ordinary questions: {self.after.refusals:.0%}, before {self.before.refusals:.0%}",
            f"- Empty answers: {self.after.empty}, before {self.before.empty}",
            f"- Simple facts still known: {self.guard.known_after:.0%}, before {self.guard.known_before:.0%}",
            f"- Harmful requests declined: {self.guard.declined_after:.0%}, before {self.guard.declined_before:.0%}",
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


def decide(probes: Sequence[Probe], *, guard: Guard, length_wished: bool, bounds: GateSettings) -> GateReport:
    """Compare the candidate with the adapter in use.

    It is accepted if at least one gain's interval lies above zero, none is clearly worse, and every bound holds.

    Args:
        probes: the questions put to both.
        guard: what was measured on the guard and safety prompts.
        length_wished: whether a wish is about length. Then the answers are held not against those of the adapter in use
            but against what it says when told the wish: saying still less is no merit.
    """
    gains = _gains(probes, bounds.confidence)
    before, after = qualities([probe.before for probe in probes]), qualities([probe.after for probe in probes])
    told = qualities([probe.hinted for probe in probes if probe.hinted])
    expected = min(told.words, before.words) if length_wished and told.words else before.words
    least = bounds.min_length_ratio * expected
    better = [name for name, gain in gains.items() if gain.low > 0]
    worse = [name for name, gain in gains.items() if gain.high < 0 or (name == "checks" and gain.mean < CLEARLY_WORSE)]
    refusals = []
    if not gains:
        refusals.append("there is nothing yet to measure it on; more feedback will change that")
    elif not better:
        refusals.append("it follows your wishes no better than before, as far as can be told")
    if worse:
        refusals.append(f"it became worse at this: {'; '.join(GAINS[name] for name in worse)}")
    if probes and after.words < least:
        refusals.append(
            f"its answers have {after.words:.0f} words on average, fewer than {least:.0f}, which nobody asked for"
        )
    refusals += _broken(before, after, bounds) + _lost(guard, bounds)
    reason = f"Not taken: {'; '.join(refusals)}." if refusals else f"Taken: {_praise(gains, better)}."
    return GateReport(
        accepted=not refusals,
        reason=reason,
        gains=gains,
        length_ratio=after.words / before.words if before.words else 1.0,
        before=before,
        after=after,
        guard=guard,
        probes=len(probes),
        held_out=sum(probe.held_out for probe in probes),
        bounds={
            "min_length_ratio": round(least / before.words, 3) if before.words else 0.0,
            **bounds.model_dump(exclude={"min_length_ratio"}),
        },
        examples=_examples(probes),
    )


def _broken(before: Qualities, after: Qualities, bounds: GateSettings) -> list[str]:
    """What can be seen to be wrong with the answers themselves."""
    found = []
    if after.repetition > before.repetition + bounds.max_repetition:
        found.append(f"it repeats itself ({after.repetition:.0%} of its phrases, {before.repetition:.0%} before)")
    if after.sameness > before.sameness + bounds.max_sameness:
        found.append(
            f"it says the same whatever it is asked ({after.sameness:.0%} alike, {before.sameness:.0%} before)"
        )
    if after.refusals > before.refusals + bounds.max_refusals:
        found.append(f"it declines ordinary questions ({after.refusals:.0%}, {before.refusals:.0%} before)")
    if after.empty > before.empty:
        found.append(f"{after.empty} of its answers are empty")
    return found


def _lost(guard: Guard, bounds: GateSettings) -> list[str]:
    """What it no longer does on prompts that no wish is about."""
    found = []
    if not guard.kl_base <= bounds.max_kl_base:  # A NaN must not pass.
        found.append(f"it moved too far from the base model ({guard.kl_base:.2f} nats a token)")
    if guard.known_after < guard.known_before - bounds.max_forgotten:
        found.append(f"it forgot simple facts ({guard.known_after:.0%} known, {guard.known_before:.0%} before)")
    if guard.declined_after < guard.declined_before - bounds.max_unguarded:
        found.append(
            f"it answers harmful requests it used to decline ({guard.declined_after:.0%} declined, "
            f"{guard.declined_before:.0%} before)"
        )
    return found


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
