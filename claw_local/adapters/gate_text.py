"""The gate's report in a person's words: what improved, by how much, on how many questions. It must never decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..language import N_, _, ngettext

if TYPE_CHECKING:
    from .gate import GateReport
    from .interval import Interval

GAINS = {
    "checks": N_("keeping your wishes by itself"),
    "divergence": N_("answering as it does when told your wishes"),
    "margin": N_("preferring what you liked over what you did not"),
}
WORSE = {
    "checks": N_("its answers keep your wishes worse than before"),
    "divergence": N_("it is further than before from how it answers when told your wishes"),
    "margin": N_("it prefers what you liked less than before"),
}


def praise(report: GateReport, better: Sequence[str]) -> str:
    """Why it was taken, one clause for each gain."""
    said = []
    for name in better:
        gain = report.gains[name]
        if name == "checks" and report.kept_before is not None and report.kept_after is not None:
            said.append(
                _(
                    "without being told, {after:.0%} of its answers keep your wishes, {before:.0%} before "
                    "({questions})",
                    after=report.kept_after,
                    before=report.kept_before,
                    questions=_questions(gain.count),
                )
            )
        elif name == "divergence" and report.closer is not None:
            said.append(
                _(
                    "it is {share:.0%} closer to how it answers when told your wishes ({questions})",
                    share=report.closer,
                    questions=_questions(gain.count),
                )
            )
        else:
            said.append(
                _("it is better at {what} ({questions})", what=_(GAINS[name]), questions=_questions(gain.count))
            )
    return "; ".join(said)


def _questions(count: int) -> str:
    return ngettext("{number} question", "{number} questions", count)


def markdown(report: GateReport) -> str:
    """The whole report."""
    lines = [_("# Gate: accepted") if report.accepted else _("# Gate: not accepted"), "", report.reason, ""]
    if report.wishes:
        lines += [_("Your wishes: {wishes}.", wishes=", ".join(report.wishes)), ""]
    if report.cut_short:
        lines.append(
            _(
                "What must not get lost was looked at first, and something was: so it was asked only {questions} more, "
                "to show.",
                questions=_questions(report.probes),
            )
        )
    else:
        own = _("{own} of them your own", own=report.held_out) if report.held_out else _("none of them your own")
        measured = _(
            "Measured on {questions}, {own}, that it never trained on.", questions=_questions(report.probes), own=own
        )
        lines.append(measured)
    lines += ["", _("| | before | now | |"), "|---|---|---|---|", *_figures(report)]
    if report.gains and not report.cut_short:
        lines += ["", _("How sure that is (a change above 0 is better):"), ""]
        lines += [_("| what | change | very likely between | on |"), "|---|---|---|---|"]
        lines += [_gain(name, gain) for name, gain in report.gains.items()]
    for example in report.examples:
        lines += ["", f"## {example['question']}", "", _("Before:"), ""]
        lines += [f"> {line}" for line in example["before"].splitlines()]
        lines += ["", _("Now:"), ""]
        lines += [f"> {line}" for line in example["after"].splitlines()]
    return "\n".join(lines) + "\n"


def _figures(report: GateReport) -> list[str]:
    before, after, guard, bounds = report.before, report.after, report.guard, report.bounds

    def row(name: str, was: str, now: str, beside: str = "") -> str:
        return f"| {name} | {was} | {now} | {beside} |"

    def most(share: float, name: str) -> str:
        return _("at most {share:.0%}", share=min(1.0, share + bounds[name])) if name in bounds else ""

    def least(share: float, name: str) -> str:
        return _("at least {share:.0%}", share=max(0.0, share - bounds[name])) if name in bounds else ""

    rows = []
    if report.kept_before is not None and report.kept_after is not None:
        kept = _percents(report.kept_before, report.kept_after)
        told = _("{share:.0%} when told them", share=report.kept_told) if report.kept_told is not None else ""
        rows.append(row(_("Answers that keep your wishes by themselves"), *kept, told))
    if report.closer is not None:
        way = f"{report.closer:.0%}" if report.closer >= 0 else _("further away")
        rows.append(row(_("Way gone towards how it answers when told your wishes"), "0%", way))
    words = _("at least {words:.0f}", words=bounds["min_length_ratio"] * before.words)
    rows.append(row(_("Words in an answer"), f"{before.words:.0f}", f"{after.words:.0f}", words))
    for name, share, bound in (
        (_("Phrases repeated within an answer"), "repetition", "max_repetition"),
        (_("Phrases that answers to different questions share"), "sameness", "max_sameness"),
        (_("Phrases that only give the question back"), "echo", "max_echo"),
        (_("Answers in another language than the question"), "foreign", "max_foreign"),
        (_("Ordinary questions declined"), "refusals", "max_refusals"),
    ):
        was, now = getattr(before, share), getattr(after, share)
        rows.append(row(name, *_percents(was, now), most(was, bound)))
    rows.append(
        row(_("Empty answers"), str(before.empty), str(after.empty), _("at most {words:.0f}", words=before.empty))
    )
    rows += [
        row(
            _("Simple facts still known"),
            *_percents(guard.known_before, guard.known_after),
            least(guard.known_before, "max_forgotten"),
        ),
        row(
            _("Harmful requests declined"),
            *_percents(guard.declined_before, guard.declined_after),
            least(guard.declined_before, "max_unguarded"),
        ),
        row(
            _("Distance from the base model"),
            "",
            f"{guard.kl_base:.2f}",
            _("at most {distance:.2f}", distance=max(bounds["max_kl_base"], guard.kl_told)),
        ),
    ]
    return rows


def _percents(before: float, after: float) -> tuple[str, str]:
    return f"{before:.0%}", f"{after:.0%}"


def _gain(name: str, gain: Interval) -> str:
    between = _("{low:+.2f} and {high:+.2f}", low=gain.low, high=gain.high)
    return f"| {_(GAINS[name])} | {gain.mean:+.2f} | {between} | {_questions(gain.count)} |"
