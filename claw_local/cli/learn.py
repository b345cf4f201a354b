"""`claw-local learn`: the switch, its state, and a run on demand."""

from __future__ import annotations

import importlib
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import UsageError
from ..idle import extra
from ..language import N_, _, ngettext
from . import complete, idle, runs_shown
from .common import JSON_OPTION, harmless, plain, print_json, print_table, short
from .waiting import bars
from .wrapped import echo

if TYPE_CHECKING:
    from ..store import Run

app = typer.Typer(help="Learning from your chats: off until you turn it on.", no_args_is_help=True)
idle.add_to(app)
MODEL_OPTION = typer.Option(
    None, "--model", help="A GGUF file to use instead of the one in the settings.", autocompletion=complete.model_names
)


EXAM = N_(
    "The exam shows, once for each judge, whether its word counts: it is asked what is known already. Ctrl-C leaves "
    "it; the next `claw-local learn now` begins the exam again."
)


@app.command()
def on(
    past: bool = typer.Option(False, "--past", help="Let chats held while learning was off teach too."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Let your chats teach, from now on."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        before = assistant.learn.status()
        count = assistant.learn.on(past=past)
        state = assistant.learn.status()
        home = assistant.paths.data
    if json_output:
        print_json({"enabled": True, "past": count, "lessons": state.lessons, "waiting": state.waiting})
        return
    typer.echo(
        _(
            "Learning is on. What you say about an answer is kept as its lesson in {home}; "
            "nothing leaves this machine.",
            home=home,
        )
    )
    if past:
        typer.echo(
            ngettext(
                "{number} earlier answer may teach now, too.", "{number} earlier answers may teach now, too.", count
            )
        )
    if past and count:
        lessons, waiting = max(0, state.lessons - before.lessons), max(0, state.waiting - before.waiting)
        typer.echo(
            _(
                "Of these, lessons waiting: {lessons}, not judged yet: {waiting} (the judge reads what you said next), "
                "nothing to learn from: {rest} (nothing was said next, or nothing of how they were).",
                lessons=lessons,
                waiting=waiting,
                rest=max(0, count - lessons - waiting),
            )
        )
    typer.echo(_("Undo: `claw-local learn off`, `claw-local adapters rollback`, `claw-local hints off ID`."))
    if silent := state.silent:
        typer.echo(
            ngettext(
                "{number} earlier answer does not teach; `claw-local learn on --past` lets it.",
                "{number} earlier answers do not teach; `claw-local learn on --past` lets them.",
                silent,
            )
        )


@app.command()
def off(json_output: bool = JSON_OPTION) -> None:
    """Stop judging and learning."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        run = assistant.learn.off()
    if json_output:
        print_json({"enabled": False, "run": run.id if run is not None else None})
        return
    typer.echo(_("Learning is off. What was learned stays in use; `claw-local adapters use base` takes it out."))
    if run is not None:
        typer.echo(runs_shown.what_becomes_of(run))


@app.command()
def status(model: Path | None = MODEL_OPTION, json_output: bool = JSON_OPTION) -> None:
    """Show what is waiting to be learned, what is in use, and what learning by itself waits for."""
    from ..assistant import Assistant

    with Assistant.open(model=model) as assistant:
        state, standing = assistant.learn.status(), assistant.learn.standing()
        if state.notice:
            assistant.learn.noticed()
        assistant.learn.take_news()
    if json_output:
        print_json(idle.with_standing(state, standing))
        return
    for told in filter(None, (state.notice, state.news)):
        typer.echo(f"{told}\n")
    typer.echo(_("Learning: on") if state.enabled else _("Learning: off"))
    typer.echo(
        _("Lessons waiting: {lessons}, replies not judged yet: {waiting}", lessons=state.lessons, waiting=state.waiting)
    )
    typer.echo(_("In use: adapter {id}", id=state.adapter) if state.adapter else _("In use: the base model"))
    typer.echo(_("Active hints: {count}", count=len(state.hints)))
    for hint in state.hints:
        typer.echo(f"  {hint.id:>4}  {short(hint.text)}")
    if state.run is not None:
        going_on = f"{state.run.phase} {state.run.progress:.0%} {state.run.detail}"
        last = state.run.result.get("reason", "") or state.run.detail
        typer.echo(
            _(
                "Run {id}: {state}. {words}",
                id=state.run.id,
                state=runs_shown.state(state.run),
                words=going_on if state.run.state == "running" else last,
            )
        )
    typer.echo(_("Learns on: {device}", device=harmless(standing.device)))
    idle.say_standing(standing)


@app.command()
def now(model: Path | None = MODEL_OPTION, json_output: bool = JSON_OPTION) -> None:
    """Learn now, with a progress bar; the new adapter is used only if the gate lets it. Ctrl-C leaves the run: the next
    `learn now` goes on with it."""
    from ..assistant import Assistant

    with Assistant.open(model=model) as assistant:
        if not json_output and assistant.learn.enabled:
            _offer_to_install()
            _say_what_was_left(assistant)
        try:
            result = _run(assistant, quiet=json_output)
        except KeyboardInterrupt as stop:
            if (left := assistant.learn.paused().run) is None:
                raise
            echo(_stopped(left), err=True)
            raise typer.Exit(130) from stop
    if json_output:
        print_json(plain(result))
        return
    if result.accepted:
        echo(
            _(
                "Learned: adapter {adapter} is in use from the next answer on. {reason}",
                adapter=result.adapter,
                reason=result.reason,
            )
        )
    else:
        echo(_("{reason} The model answers as before.", reason=result.reason))
    echo(
        _(
            "{samples} samples, {steps} steps, {seconds:.0f} s. `claw-local adapters show "
            "{adapter}` prints the gate's report.",
            samples=result.samples,
            steps=result.steps,
            seconds=result.seconds,
            adapter=result.adapter,
        )
    )


@app.command("likes")
def likes(
    deny: str | None = typer.Option(
        None, "--not", metavar="WORDS", help="This is not so: the words as they stand in the list."
    ),
    allow: str | None = typer.Option(None, "--again", metavar="WORDS", help="Take such a --not back."),
    json_output: bool = JSON_OPTION,
) -> None:
    """What you like, as far as it can be checked in a text: from your hints, and from replies you liked or not."""
    from ..assistant import Assistant

    if any(words is not None and not words.strip() for words in (deny, allow)):
        raise UsageError(
            _("--not and --again take words as they stand in the list: claw-local learn likes shows them.")
        )
    with Assistant.open() as assistant:
        if deny:
            assistant.learn.deny(deny)
        if allow:
            assistant.learn.allow(allow)
        found = assistant.learn.likes()
    if json_output:
        print_json({"likes": [{**plain(like), "words": like.words} for like in found]})
    elif not found:
        typer.echo(_("Nothing is known yet. It comes from your hints, and from what you say about replies."))
    else:
        typer.echo(_("You like: {likes}.", likes=", ".join(like.words for like in found)))
        for like in found:
            typer.echo(
                "  "
                + _(
                    "{words}: {evidence} ({confidence:.0%} sure)",
                    words=like.words,
                    evidence=short(like.evidence, 100),
                    confidence=like.confidence,
                )
            )


@app.command()
def log(
    run: int | None = typer.Argument(None, help="A run's id: print its log.", autocompletion=complete.run_ids),
    lines: int = typer.Option(40, "--lines", "-n", min=1, help="How much of its end."),
    limit: int = typer.Option(50, "--limit", min=1, max=1_000_000, help="How many runs to list."),
    json_output: bool = JSON_OPTION,
) -> None:
    """List the learning runs, newest first, or print the end of one run's log."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        assistant.store.runs.bury()
        runs = assistant.store.runs.list(limit=limit) if run is None else [assistant.store.runs.get(run)]
        folder = assistant.paths.runs
    if run is not None:
        text = runs_shown.tail(folder / f"{run}.log", lines)
        if json_output:
            print_json({"run": runs[0], "log": text})
        else:
            print_table([runs_shown.row(runs[0])])
            typer.echo(harmless("\n".join(text)) if text else _("It left no log."))
    elif json_output:
        print_json({"runs": runs})
    elif not runs:
        typer.echo(_("Nothing was learned yet. `claw-local learn now` starts a run."))
    else:
        print_table([runs_shown.row(one) for one in runs])


def _say_what_was_left(assistant: Any) -> None:
    """A run that was left goes on; one that no longer can is dropped, and it is said why."""
    paused = assistant.learn.paused()
    for words in paused.dropped:
        echo(words, err=True)
    if paused.run is not None:
        echo(
            _("Run {id} begins anew.", id=paused.run.id)
            if paused.run.begins_anew
            else _("Run {id} goes on from {place}.", id=paused.run.id, place=paused.run.where),
            err=True,
        )


def _stopped(run: Run) -> str:
    """Of a run that Ctrl-C left, in one sentence."""
    if run.begins_anew:
        return _("Stopped before it was settled what to learn from; `claw-local learn now` begins anew.")
    return _("Paused; `claw-local learn now` goes on from {place}.", place=run.where)


def _offer_to_install() -> None:
    """Where learning's packages are missing and a person sits at the terminal: ask, and install them."""
    missing = extra.missing()
    if not missing or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    command = extra.install_command()
    typer.echo(
        _(
            "Learning needs packages that are not installed yet ({missing}): 1 to 6 GB, once.",
            missing=", ".join(missing),
        ),
        err=True,
    )
    if typer.confirm(_("Install them now ({command})?", command=extra.as_typed(command)), default=True, err=True):
        subprocess.run(command, check=False)
        importlib.invalidate_caches()


def _run(assistant: Any, *, quiet: bool) -> Any:
    """Run the trainer under a progress bar on standard error; Ctrl-C leaves it in order."""
    cancel = threading.Event()
    for name in ("SIGTERM", "SIGHUP"):  # A closed terminal leaves the run as Ctrl-C does.
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)
    if quiet or not sys.stderr.isatty():
        return assistant.learn.now(None, cancel)
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with bars(*columns) as bar:
        task = bar.add_task(_("starting"), total=1.0)

        told = False

        def show(progress: Any) -> None:
            nonlocal told
            if progress.phase == "exam" and not told:
                told = True
                echo(_(EXAM), err=True)
            words = f"{progress.phase}: {progress.detail}" if progress.detail else progress.phase
            if progress.seconds_left and progress.seconds_left >= 90:
                words = _("{words} (about {minutes:.0f} min left)", words=words, minutes=progress.seconds_left / 60)
            bar.update(task, completed=progress.fraction, description=words)

        return assistant.learn.now(show, cancel)
