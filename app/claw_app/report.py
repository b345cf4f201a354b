"""A training run and its gate's report in plain words. It must never judge: it only says what the gate measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.content import Content

from claw_local.language import N_, _, ngettext

from .text import clean, one_line

GAINS = {
    "checks": N_("Keeping your wishes by itself"),
    "margin": N_("Preferring what you liked"),
    "divergence": N_("Answering as if told your wishes"),
}
_SHARES = (
    ("repetition", N_("Phrases repeated within an answer")),
    ("sameness", N_("Phrases that answers to different questions share")),
    ("refusals", N_("Ordinary questions refused")),
    ("echo", N_("Phrases that only give the question back")),
    ("foreign", N_("Answers in another language than the question")),
)
_GUARDS = (("known", N_("Simple facts still known")), ("declined", N_("Harmful requests declined")))
_UNKNOWN = float("inf")


def verdict(result: Mapping[str, Any]) -> str:
    """How a run ended, in one word."""
    return _("taken") if result.get("accepted") else _("not taken")


def work(result: Mapping[str, Any]) -> str:
    """What a run did: steps, samples, time."""
    seconds = float(result.get("seconds") or 0.0)
    return _(
        "{steps} on {samples} in {time}",
        steps=ngettext("{number} step", "{number} steps", int(result.get("steps") or 0)),
        samples=ngettext("{number} sample", "{number} samples", int(result.get("samples") or 0)),
        time=f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min",
    )


def sentences(gate: Mapping[str, Any]) -> list[Content]:
    """The report's figures, one line each. What an older report does not say is left out."""
    lines: list[Content] = []
    if gate.get("probes"):
        own = int(gate.get("held_out") or 0)
        lines.append(
            Content(
                ngettext(
                    "Tried on {number} question, {own} of them yours that it never trained on.",
                    "Tried on {number} questions, {own} of them yours that it never trained on.",
                    int(gate["probes"]),
                    own=own,
                )
            )
        )
    for name, gain in dict(gate.get("gains") or {}).items():
        lines.append(_gain(_(GAINS.get(str(name), str(name))), gain, _plainly(str(name), gate)))
    before, after = dict(gate.get("before") or {}), dict(gate.get("after") or {})
    if "words" in before and "words" in after:
        lines.append(
            Content(
                _(
                    "Answers have {after:.0f} words on average; {before:.0f} before.",
                    after=after["words"],
                    before=before["words"],
                )
            )
        )
    for name, words in _SHARES:
        if name in before and name in after:
            lines.append(
                Content(
                    _(
                        "{words}: {after:.0%}; {before:.0%} before.",
                        words=_(words),
                        after=after[name],
                        before=before[name],
                    )
                )
            )
    guard = dict(gate.get("guard") or {})
    for name, words in _GUARDS:
        if f"{name}_after" in guard:
            lines.append(
                Content(
                    _(
                        "{words}: {after:.0%}; {before:.0%} before.",
                        words=_(words),
                        after=guard[f"{name}_after"],
                        before=guard.get(f"{name}_before", 0),
                    )
                )
            )
    return lines


def _gain(name: str, gain: Mapping[str, Any], plainly: str) -> Content:
    mean, low, high = (_number(gain.get(key)) for key in ("mean", "low", "high"))
    word, style = (
        (_("better"), "$success")
        if low > 0
        else (_("worse"), "$error")
        if high < 0
        else (_("no clear difference"), "$quiet")
    )
    on = ngettext("on {number} question", "on {number} questions", int(gain.get("count") or 0))
    if plainly:
        return Content.assemble(f"{name}: ", (word, f"bold {style}"), _(", {plainly} ({on}).", plainly=plainly, on=on))
    known = abs(low) != _UNKNOWN and abs(high) != _UNKNOWN
    surely = _(", very likely between {low:+.2f} and {high:+.2f}", low=low, high=high) if known else ""
    return Content.assemble(
        f"{name}: ", (word, f"bold {style}"), " " + _("({mean:+.2f}{surely}, {on}).", mean=mean, surely=surely, on=on)
    )


def _plainly(gain: str, gate: Mapping[str, Any]) -> str:
    """How much, in shares that need no explanation; "" where the report has none."""
    kept_before, kept_after, closer = (gate.get(name) for name in ("kept_before", "kept_after", "closer"))
    if gain == "checks" and kept_before is not None and kept_after is not None:
        return _(
            "{kept_after:.0%} of the answers do; {kept_before:.0%} before",
            kept_after=_number(kept_after),
            kept_before=_number(kept_before),
        )
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
