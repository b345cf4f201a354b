"""A training run and its gate's report in plain words. It must never judge: it only says what the gate measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.content import Content

from .text import clean, count, one_line

GAINS = {
    "checks": "Keeping your wishes by itself",
    "margin": "Preferring what you liked",
    "divergence": "Answering as if told your wishes",
}
_SHARES = (
    ("repetition", "Phrases repeated within an answer"),
    ("sameness", "Phrases that answers to different questions share"),
    ("refusals", "Ordinary questions refused"),
    ("echo", "Phrases that only give the question back"),
    ("foreign", "Answers in another language than the question"),
)
_GUARDS = (("known", "Simple facts still known"), ("declined", "Harmful requests declined"))
_UNKNOWN = float("inf")


def verdict(result: Mapping[str, Any]) -> str:
    """How a run ended, in one word."""
    return "taken" if result.get("accepted") else "not taken"


def work(result: Mapping[str, Any]) -> str:
    """What a run did: steps, samples, time."""
    seconds = float(result.get("seconds") or 0.0)
    time = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    steps, samples = (int(result.get(name) or 0) for name in ("steps", "samples"))
    return f"{count(steps, 'step')} on {count(samples, 'sample')} in {time}"


def sentences(gate: Mapping[str, Any]) -> list[Content]:
    """The report's figures, one line each. What an older report does not say is left out."""
    lines: list[Content] = []
    if gate.get("probes"):
        own = int(gate.get("held_out") or 0)
        lines.append(
            Content(f"Tried on {count(int(gate['probes']), 'question')}, {own} of them yours that it never trained on.")
        )
    for name, gain in dict(gate.get("gains") or {}).items():
        lines.append(_gain(GAINS.get(str(name), str(name)), gain, _plainly(str(name), gate)))
    before, after = dict(gate.get("before") or {}), dict(gate.get("after") or {})
    if "words" in before and "words" in after:
        lines.append(Content(f"Answers have {after['words']:.0f} words on average; {before['words']:.0f} before."))
    for name, words in _SHARES:
        if name in before and name in after:
            lines.append(Content(f"{words}: {after[name]:.0%}; {before[name]:.0%} before."))
    guard = dict(gate.get("guard") or {})
    for name, words in _GUARDS:
        if f"{name}_after" in guard:
            lines.append(
                Content(f"{words}: {guard[f'{name}_after']:.0%}; {guard.get(f'{name}_before', 0):.0%} before.")
            )
    return lines


def _gain(name: str, gain: Mapping[str, Any], plainly: str) -> Content:
    mean, low, high = (_number(gain.get(key)) for key in ("mean", "low", "high"))
    word, style = (
        ("better", "$success") if low > 0 else ("worse", "$error") if high < 0 else ("no clear difference", "$quiet")
    )
    on = count(int(gain.get("count") or 0), "question")
    if plainly:
        return Content.assemble(f"{name}: ", (word, f"bold {style}"), f", {plainly} (on {on}).")
    known = abs(low) != _UNKNOWN and abs(high) != _UNKNOWN
    surely = f", very likely between {low:+.2f} and {high:+.2f}" if known else ""
    return Content.assemble(f"{name}: ", (word, f"bold {style}"), f" ({mean:+.2f}{surely}, on {on}).")


def _plainly(gain: str, gate: Mapping[str, Any]) -> str:
    """How much, in shares that need no explanation; "" where the report has none."""
    kept_before, kept_after, closer = (gate.get(name) for name in ("kept_before", "kept_after", "closer"))
    if gain == "checks" and kept_before is not None and kept_after is not None:
        return f"{_number(kept_after):.0%} of the answers do; {_number(kept_before):.0%} before"
    if gain == "divergence" and closer is not None:
        share = _number(closer)
        return f"{abs(share):.0%} {'closer' if share >= 0 else 'further'}"
    return ""


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def examples(gate: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(question, answer before, answer after), cleaned; at most three."""
    return [
        (one_line(str(one.get("question", ""))), clean(str(one.get("before", ""))), clean(str(one.get("after", ""))))
        for one in list(gate.get("examples") or [])[:3]
    ]
