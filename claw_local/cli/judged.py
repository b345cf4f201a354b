"""What the judge's commands print. It must never judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from .common import harmless, short

if TYPE_CHECKING:
    from ..idle.judging import JudgeTraining
    from ..judge.evaluation import Evaluation, Measures
    from ..judge.explanation import Explanation
    from ..store import Signal
    from ..store.records import ExamRecord

_ASKED = {"next": "what the next message says of a reply", "follows": "whether a reply follows a hint"}


def print_evaluation(result: Evaluation, source: str, model: str, show_wrong: bool) -> None:
    overall, hints = result.overall, result.hints
    typer.echo(f"{overall.examples} examples from {source}, judged by {model} ({result.judge_version})\n")
    typer.echo(f"accuracy             {overall.accuracy:.3f}   (three verdicts)")
    typer.echo(f"auc                  {_figure(overall.auc)}   (good against bad)")
    typer.echo(f"calibration_error    {overall.calibration_error:.3f}   (ten bins)")
    typer.echo(f"seconds_per_example  {result.seconds_per_example:.3f}")
    typer.echo(
        f"directives           precision {_figure(hints.precision)}, recall {_figure(hints.recall)}, "
        f"kept as a hint {_figure(hints.kept)} of {hints.directives}\n"
    )
    typer.echo("label \\ verdict    -1     0    +1")
    for label, row in overall.confusion.items():
        typer.echo(f"{int(label):+d}               " + " ".join(f"{count:>5}" for count in row.values()))
    _print_groups("language", result.by_language)
    _print_groups("situation", result.by_situation)
    if show_wrong:
        typer.echo("\nlabel verdict")
        for miss in result.wrong:
            typer.echo(f"{miss.score:>+5d} {miss.verdict:>+7d}  {miss.situation:<14} {short(miss.next, 80)}")


def _print_groups(title: str, groups: dict[str, Measures]) -> None:
    typer.echo(f"\n{title:<16} examples  accuracy    auc  calibration_error")
    for name, measures in groups.items():
        typer.echo(
            f"{short(name, 16):<16} {measures.examples:>8}  {measures.accuracy:>8.3f}  {_figure(measures.auc)}  "
            f"{measures.calibration_error:>17.3f}"
        )


def _figure(value: float | None) -> str:
    return "    -" if value is None else f"{value:.3f}"


def print_exams(results: Sequence[ExamRecord], model: str, needed: float) -> None:
    for record in results:
        typer.echo(f"{record.question}: {_ASKED[record.question]}. Judge: {model} ({record.version})")
        verdict = "passed, its word counts" if record.passed else "failed, its word counts nothing here"
        typer.echo(
            f"  {verdict}: auc {record.auc:.3f} of at least {needed:.2f}, accuracy {record.accuracy:.3f}, "
            f"{record.examples} cases, {record.seconds_per_example:.2f} s each"
        )
        for name, auc in record.groups.items():
            typer.echo(f"    {short(name, 20):<20} {_figure(auc)}")


def print_explanation(result: Explanation, next_text: str, next_role: str, kept: list[Signal]) -> None:
    from ..judge.explanation import LEARNED

    verdict = result.verdict
    typer.echo(f"Next ({next_role}): {short(next_text, 100)}")
    typer.echo(f"Verdict: {verdict.score:+d}   judge {verdict.version}\n")
    header = "".join(f"{name:>10}" for name in verdict.probabilities)
    typer.echo(f"{'':<24}{header}")
    if result.logprobs is not None and result.prior is not None:
        typer.echo(f"{'model, nats':<24}" + "".join(f"{value:>10.2f}" for value in result.logprobs.values()))
        typer.echo(f"{'its lean, taken off':<24}" + "".join(f"{value:>10.2f}" for value in result.prior.values()))
    for one in result.counted:
        nats = "".join(f"{one.nats if name == one.verdict else 0.0:>+10.2f}" for name in verdict.probabilities)
        where = f"   {short(one.words, 40)!r}" if one.words else ""
        # The wording may speak for two verdicts, in a line each.
        name = f"{one.name}, for {one.verdict}" if one.name == LEARNED else one.name
        typer.echo(f"{name:<24}{nats}{where}")
    if next_role != "user":
        typer.echo("(a tool's outcome is read by rules, not by the model)")
    elif not result.heard:
        typer.echo("(the model failed its exam in this question, so only the words count: claw-local judge exam)")
    typer.echo(f"{'probability':<24}" + "".join(f"{value:>10.3f}" for value in verdict.probabilities.values()))
    if verdict.votes:
        typer.echo(f"{'votes':<24}" + "  ".join(f"{vote:+d}" for vote in verdict.votes))
    _print_hint(result)
    for signal in kept:
        votes = f", votes {' '.join(f'{vote:+d}' for vote in signal.votes)}" if signal.votes else ""
        hint = f", hint: {short(signal.hint)}" if signal.hint else ""
        typer.echo(f"On record: {signal.source} {signal.score:+d}{votes}{hint}")


FILTER_WORDS = {
    "too_short": "long enough to say something",
    "too_long": "short enough to be a wish",
    "off_topic": "about how the reply should be",
    "secret": "holds no password, key or number that should stay secret",
    "system_talk": "does not speak to the system",
    "not_the_person": "comes from the person, not out of a file or a tool",
    "other_language": "in the person's language",
    "from_the_reply": "not copied from the reply",
    "not_what_was_said": "says what the person said",
}
"""What a hint must be, by the filter that looks at it."""


def _print_hint(result: Explanation) -> None:
    verdict = result.verdict
    if verdict.candidate:
        whose = "in the judge's words" if verdict.written else "in your words"
        typer.echo(f"\nHint, {whose}: {harmless(verdict.candidate)}")
        typer.echo(f"Kept: {f'yes, {_holds(verdict.scope)}' if verdict.hint else 'no'}")
        for name, passed in result.filters.items():
            typer.echo(f"  {'passed' if passed else 'FAILED'}  {FILTER_WORDS[name]} ({name})")
    else:
        typer.echo("\nHint: none. No sentence that counts says how the reply should have been.")
    for text, filters in verdict.dropped:
        failed = ", ".join(FILTER_WORDS[name] for name in filters)
        typer.echo(f"Not taken, in the judge's words: {short(text, 60)}  (FAILED {failed})")


def _holds(scope: str) -> str:
    return "for every chat" if scope == "everywhere" else "for its turn only"


def print_training(result: JudgeTraining) -> None:
    typer.echo(f"{'Taken' if result.accepted else 'Not taken'}: {result.reason}")
    typer.echo(f"{result.samples} cases of your feedback, {result.steps} steps, {result.seconds:.0f} s.")
    for name in result.before:
        typer.echo(
            f"  {name:<10} {result.before[name]:.3f} → {result.after.get(name, 0.0):.3f}   (shipped dev examples)"
        )
