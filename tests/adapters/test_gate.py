"""The gate lets good candidates pass and stops bad ones. Measurements are made up here: deciding is all it does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claw_local.adapters.gate import GateReport, Guard, Probe, bootstrap, decide
from claw_local.settings import GateSettings

LONG = "one two three four five six seven eight nine ten"


def probes(count: int = 12, **changes: object) -> list[Probe]:
    base = Probe(
        question="q",
        held_out=False,
        before=LONG,
        after=LONG,
        divergence_before=0.5,
        divergence_after=0.2,
        score_before=-1.0,
        score_after=1.0,
    )
    made = [replace(base, **changes) for _ in range(count)]  # type: ignore[arg-type]
    # A little spread, so that the interval is one.
    return [
        replace(p, divergence_before=p.divergence_before and p.divergence_before + n / 100) for n, p in enumerate(made)
    ]


def apart(after: str) -> list[Probe]:
    """Different questions, answered differently before, and with `after` (the question's word in it) now."""
    words = "apple bridge cloud drum engine flute garden harbour island jacket kettle lemon".split()
    return [
        replace(p, before=f"The {w} has {w}s and {w}ness, which is {w} all over.", after=after.format(w))
        for w, p in zip(words, probes(), strict=True)
    ]


def verdict(made: list[Probe], *, length_wished: bool = False, **guard: float) -> GateReport:
    measured = Guard(**{"kl_base": 0.1, "declined_before": 0.5, "declined_after": 0.5, **guard})
    return decide(made, guard=measured, length_wished=length_wished, bounds=GateSettings())


def test_a_better_candidate_is_taken() -> None:
    report = verdict(probes())
    assert report.accepted
    assert report.reason.startswith("Taken: ")
    assert report.gains["divergence"].low > 0


@pytest.mark.parametrize(
    ("made", "options", "word"),
    [
        (probes(after="one two"), {}, "2 words on average, fewer than 6"),
        (probes(after="one", hinted="one two three four"), {"length_wished": True}, "fewer than 2"),
        (apart("I'm sorry, but I cannot help with {} today."), {}, "declines ordinary"),
        (apart("It depends on many things, so think it over well and ask a friend."), {}, "says the same"),
        (probes(), {"known_before": 0.9, "known_after": 0.6}, "forgot simple facts (60% known, 90% before)"),
        (probes(), {"declined_after": 0.1}, "harmful requests"),
        (probes(after=""), {"length_wished": True}, "empty"),
        (probes(after=" ".join(["again and again"] * 20)), {}, "repeats"),
        (probes(), {"kl_base": 3.0}, "too far"),
        (probes(), {"kl_base": float("nan")}, "too far"),
        (probes(divergence_after=0.9), {}, "worse"),
        (probes(score_after=-1.0, divergence_before=None, divergence_after=None), {}, "no better"),
        (probes(score_before=1.0, score_after=0.5), {}, "worse"),
        (probes(divergence_before=None, score_before=None), {}, "nothing yet to measure"),
        ([], {}, "nothing yet to measure"),
        (probes(count=1), {}, "no better"),
    ],
)
def test_a_candidate_that_broke_something_is_not(made: list[Probe], options: dict[str, float], word: str) -> None:
    report = verdict(made, **options)  # type: ignore[arg-type]
    assert not report.accepted
    assert word in report.reason


def test_short_answers_pass_when_they_were_wished_for() -> None:
    assert verdict(probes(after="one two", hinted="one two three"), length_wished=True).accepted
    assert not verdict(probes(after="one two", hinted="one two three")).accepted


def test_without_hints_the_judged_replies_decide() -> None:
    plain = {"divergence_before": None, "score_before": None, "score_after": None}
    liked = [replace(p, margin=0.2 + n / 50) for n, p in enumerate(probes(**plain))]
    assert verdict(liked).accepted
    assert not verdict([replace(p, margin=-(p.margin or 0)) for p in liked]).accepted


def test_bootstrap_interval_holds_the_mean_and_narrows_with_more_turns() -> None:
    few, many = bootstrap([0.0, 1.0] * 3, 0.9), bootstrap([0.0, 1.0] * 300, 0.9)
    assert few.low <= 0.5 <= few.high
    assert few.mean == many.mean == 0.5
    assert many.high - many.low < 0.3 * (few.high - few.low)


def test_the_report_reads_as_text_and_json() -> None:
    report = verdict(probes())
    text = report.as_markdown()
    assert "accepted" in text and "Before:" in text and "0.10" in text
    assert report.as_json()["gains"]["checks"]["count"] == 12
    assert len(report.examples) == 3
