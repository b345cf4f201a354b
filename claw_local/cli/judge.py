"""`claw-local judge`: how good the judge is, and why it says what it says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import UsageError
from .common import JSON_OPTION, harmless, plain, print_json, short

if TYPE_CHECKING:
    from ..assistant import Assistant
    from ..engine.llama_cpp import LlamaCppEngine
    from ..judge.evaluation import Evaluation, Measures
    from ..judge.explanation import Explanation
    from ..store import Signal, StoredMessage

app = typer.Typer(help="The judge: how good it is, and why it says what it says.", no_args_is_help=True)
MODEL_OPTION = typer.Option(None, "--model", help="A GGUF file to judge with instead of the one in the settings.")
ADAPTER_OPTION = typer.Option(None, "--adapter", help="A judge's adapter: a GGUF LoRA for that model.")


@app.command("eval")
def evaluate(
    file: Path | None = typer.Argument(None, help="Labelled examples, JSON lines. Without it, the shipped ones."),
    split: str | None = typer.Option(
        None, "--split", help="train, dev or test; of the shipped ones, test if not said."
    ),
    model: str | None = MODEL_OPTION,
    adapter: Path | None = ADAPTER_OPTION,
    show_wrong: bool = typer.Option(False, "--wrong", help="Also list the examples that were judged wrongly."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Measure the judge on labelled examples: accuracy, ranking, calibration, hints, time."""
    from ..judge import examples as labelled
    from ..judge.evaluation import evaluate as measure
    from ..judge.judge import Judge

    if split is not None and split not in labelled.SPLITS:
        raise UsageError(f"The split is train, dev or test, not {split!r}.")
    found = labelled.shipped(split or "test") if file is None else labelled.read(file, split)
    source = str(file) if file is not None else f"the shipped examples, split {split or 'test'}"
    with _engine(model, adapter) as engine, _progress(len(found), quiet=json_output) as progress:
        result = measure(Judge(engine, trained=adapter is not None), found, on_progress=progress)
        name = engine.info.name
    if json_output:
        overall = plain(result.overall)
        rest = {key: value for key, value in plain(result).items() if key != "overall"}
        print_json({"source": source, "model": name, "adapter": str(adapter or ""), **overall, **rest})
    else:
        _print_evaluation(result, source, f"{name} with {adapter.name}" if adapter else name, show_wrong)


@app.command()
def explain(
    message: str = typer.Argument(..., help="The id of a reply or of what followed it; or words to be judged."),
    question: str = typer.Option("", "--question", help="With words: what had been asked."),
    reply: str = typer.Option("", "--reply", help="With words: the reply before them."),
    model: str | None = MODEL_OPTION,
    adapter: Path | None = ADAPTER_OPTION,
    json_output: bool = JSON_OPTION,
) -> None:
    """Show what the judge makes of one reply, part by part. Nothing is kept of it."""
    from ..assistant import Assistant
    from ..judge.explanation import explain as explain_one
    from ..judge.judge import Judge

    kept: list[Signal] = []
    next_text, next_role = message, "user"
    if message.strip().isdecimal():
        with Assistant.open() as assistant:
            question, reply, next_text, next_role, kept = _stored(assistant, int(message))
    with _engine(model, adapter) as engine:
        result = explain_one(Judge(engine, trained=adapter is not None), question, reply, next_text, next_role)
    if json_output:
        print_json({"reply": reply, "next": next_text, "next_role": next_role, **plain(result), "kept": plain(kept)})
    else:
        _print_explanation(result, next_text, next_role, kept)


def _stored(assistant: Assistant, message_id: int) -> tuple[str, str, str, str, list[Signal]]:
    """Question, reply, next state, its role, and the signals that are kept of the reply."""
    messages = assistant.store.messages
    reply = messages.get(message_id)
    following: StoredMessage | None
    if reply.role != "assistant" and reply.parent_id is not None:
        following, reply = reply, messages.get(reply.parent_id)
    else:
        following = next(iter(messages.next_states(message_id)), None)
    if reply.role != "assistant":
        raise UsageError(f"Message {message_id} is no reply and follows none, so there is nothing to judge.")
    if following is None:
        raise UsageError(
            f"Nothing has followed message {message_id} yet: a reply is judged by what is said next. "
            'Try words of your own: claw-local judge explain "too long"'
        )
    history = messages.branch(reply.parent_id)
    question = history[-1].content if history else ""
    return question, reply.content, following.content, following.role, assistant.signals([reply.id])[reply.id]


@contextmanager
def _engine(model: str | None, adapter: Path | None) -> Iterator[LlamaCppEngine]:
    """The model that judges, its own adapter set."""
    from ..engine.base import AdapterSlot
    from ..engine.llama_cpp import LlamaCppEngine
    from ..engine.opening import local_model, read_name
    from ..paths import locate
    from ..settings import load

    if model and read_name(model)[0] != "gguf":
        raise UsageError(
            f"{model} is behind a server, which does not tell how likely each verdict is. Name a GGUF file instead."
        )
    paths = locate()
    settings = load(paths)
    path = local_model(settings, paths, model).path
    assert path is not None
    cache = paths.data if paths.data.is_dir() else None
    with LlamaCppEngine.open(path, settings.model, cache_dir=cache) as engine:
        if adapter is not None:
            engine.set_judge_adapters([AdapterSlot(adapter)])
        yield engine


@contextmanager
def _progress(total: int, *, quiet: bool) -> Iterator[Any]:
    """A bar on standard error, where a person sits there."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("judging", total=total)
        yield lambda done, _: bar.update(task, completed=done)


def _print_evaluation(result: Evaluation, source: str, model: str, show_wrong: bool) -> None:
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


def _print_explanation(result: Explanation, next_text: str, next_role: str, kept: list[Signal]) -> None:
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
            typer.echo(f"{one.name:<24}{nats}{where}")
    elif next_role != "user":
        typer.echo("(a tool's outcome is read by rules, not by the model)")
    typer.echo(f"{'probability':<24}" + "".join(f"{value:>10.3f}" for value in verdict.probabilities.values()))
    if verdict.candidate:
        typer.echo(f"\nHint: {harmless(verdict.candidate)}")
        typer.echo(f"Kept: {f'yes, {_holds(verdict.scope)}' if verdict.hint else 'no'}")
        for name, passed in result.filters.items():
            typer.echo(f"  {'passed' if passed else 'FAILED'}  {name}")
    else:
        typer.echo("\nHint: none. No sentence that counts says how the reply should have been.")
    for signal in kept:
        typer.echo(
            f"On record: {signal.source} {signal.score:+d}" + (f", hint: {short(signal.hint)}" if signal.hint else "")
        )


def _holds(scope: str) -> str:
    return "for every chat" if scope == "everywhere" else "for its turn only"
