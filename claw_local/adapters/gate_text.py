"""The gate's report in a person's words: what improved, by how much, on how many questions. It must never decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .gate import GateReport
    from .interval import Interval

GAINS = {
    "checks": "keeping your wishes by itself",
    "divergence": "answering as it does when told your wishes",
    "margin": "preferring what you liked over what you did not",
}
WORSE = {
    "checks": "its answers keep your wishes worse than before",
    "divergence": "it is further than before from how it answers when told your wishes",
    "margin": "it prefers what you liked less than before",
}


def praise(report: GateReport, better: Sequence[str]) -> str:
    """Why it was taken, one clause for each gain."""
    said = []
    for name in better:
        gain = report.gains[name]
        if name == "checks" and report.kept_before is not None and report.kept_after is not None:
            said.append(
                f"without being told, {report.kept_after:.0%} of its answers keep your wishes, "
                f"{report.kept_before:.0%} before ({_questions(gain.count)})"
            )
        elif name == "divergence" and report.closer is not None:
            said.append(
                f"it is {report.closer:.0%} closer to how it answers when told your wishes ({_questions(gain.count)})"
            )
        else:
            said.append(f"it is better at {GAINS[name]} ({_questions(gain.count)})")
    return "; ".join(said)


def _questions(count: int) -> str:
    return f"{count} question{'' if count == 1 else 's'}"


def markdown(report: GateReport) -> str:
    """The whole report."""
    lines = [f"# Gate: {'accepted' if report.accepted else 'not accepted'}", "", report.reason, ""]
    if report.wishes:
        lines += [f"Your wishes: {', '.join(report.wishes)}.", ""]
    if report.cut_short:
        lines.append(
            f"What must not get lost was looked at first, and something was: so it was asked only "
            f"{_questions(report.probes)} more, to show."
        )
    else:
        own = f"{report.held_out} of them your own" if report.held_out else "none of them your own"
        lines.append(f"Measured on {_questions(report.probes)}, {own}, that it never trained on.")
    lines += ["", "| | before | now | |", "|---|---|---|---|", *_figures(report)]
    if report.gains and not report.cut_short:
        lines += ["", "How sure that is (a change above 0 is better):", ""]
        lines += ["| what | change | very likely between | on |", "|---|---|---|---|"]
        lines += [_gain(name, gain) for name, gain in report.gains.items()]
    for example in report.examples:
        lines += ["", f"## {example['question']}", "", "Before:", ""]
        lines += [f"> {line}" for line in example["before"].splitlines()]
        lines += ["", "Now:", ""]
        lines += [f"> {line}" for line in example["after"].splitlines()]
    return "\n".join(lines) + "\n"


def _figures(report: GateReport) -> list[str]:
    before, after, guard, bounds = report.before, report.after, report.guard, report.bounds

    def row(name: str, was: str, now: str, beside: str = "") -> str:
        return f"| {name} | {was} | {now} | {beside} |"

    def most(share: float, name: str) -> str:
        return f"at most {min(1.0, share + bounds[name]):.0%}" if name in bounds else ""

    def least(share: float, name: str) -> str:
        return f"at least {max(0.0, share - bounds[name]):.0%}" if name in bounds else ""

    rows = []
    if report.kept_before is not None and report.kept_after is not None:
        kept = _percents(report.kept_before, report.kept_after)
        told = f"{report.kept_told:.0%} when told them" if report.kept_told is not None else ""
        rows.append(row("Answers that keep your wishes by themselves", *kept, told))
    if report.closer is not None:
        way = f"{report.closer:.0%}" if report.closer >= 0 else "further away"
        rows.append(row("Way gone towards how it answers when told your wishes", "0%", way))
    words = f"at least {bounds['min_length_ratio'] * before.words:.0f}"
    rows.append(row("Words in an answer", f"{before.words:.0f}", f"{after.words:.0f}", words))
    for name, share, bound in (
        ("Phrases repeated within an answer", "repetition", "max_repetition"),
        ("Phrases that answers to different questions share", "sameness", "max_sameness"),
        ("Phrases that only give the question back", "echo", "max_echo"),
        ("Answers in another language than the question", "foreign", "max_foreign"),
        ("Ordinary questions declined", "refusals", "max_refusals"),
    ):
        was, now = getattr(before, share), getattr(after, share)
        rows.append(row(name, *_percents(was, now), most(was, bound)))
    rows.append(row("Empty answers", str(before.empty), str(after.empty), f"at most {before.empty}"))
    rows += [
        row(
            "Simple facts still known",
            *_percents(guard.known_before, guard.known_after),
            least(guard.known_before, "max_forgotten"),
        ),
        row(
            "Harmful requests declined",
            *_percents(guard.declined_before, guard.declined_after),
            least(guard.declined_before, "max_unguarded"),
        ),
        row(
            "Distance from the base model",
            "",
            f"{guard.kl_base:.2f}",
            f"at most {max(bounds['max_kl_base'], guard.kl_told):.2f}",
        ),
    ]
    return rows


def _percents(before: float, after: float) -> tuple[str, str]:
    return f"{before:.0%}", f"{after:.0%}"


def _gain(name: str, gain: Interval) -> str:
    return f"| {GAINS[name]} | {gain.mean:+.2f} | {gain.low:+.2f} and {gain.high:+.2f} | {_questions(gain.count)} |"
