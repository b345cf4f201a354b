"""`claw-local learn pause`, `resume`, `schedule`, and what the system's timer calls: learning by itself."""

from __future__ import annotations

import re
import signal
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import UsageError
from .common import JSON_OPTION, harmless, plain, print_json

if TYPE_CHECKING:
    from ..idle.schedule import Scheduled, Scheduling
    from ..idle.scheduler import Job
    from ..idle.standing import Standing

schedule = typer.Typer(help="Learning while no window is open, by the system's own timer.", no_args_is_help=True)

_FOR = re.compile(r"(\d{1,4})\s*([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def add_to(app: typer.Typer) -> None:
    """Put these commands into `claw-local learn`."""
    app.command()(pause)
    app.command()(resume)
    app.add_typer(schedule, name="schedule")
    app.command(hidden=True)(tick)


def pause(
    span: str = typer.Option("", "--for", metavar="TIME", help="Only for so long: 30m, 2h, 3d. Else until `resume`."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Hold learning by itself, also across restarts; a run that began by itself leaves, and goes on after `resume`."""
    from ..assistant import Assistant

    until = _after(span, datetime.now().astimezone()) if span else None
    with Assistant.open() as assistant:
        held = assistant.learn.hold(until)
        run = assistant.store.runs.running()
    if json_output:
        print_json({"held": True, "since": held.since, "until": held.until})
        return
    end = f" until {until:%Y-%m-%d %H:%M}" if until is not None else ""
    typer.echo(f"Nothing is learned by itself{end}. `claw-local learn resume` takes that back.")
    if run is not None and run.started_by == "person":
        typer.echo(f"Run {run.id} was begun by you and goes on.")


def resume(json_output: bool = JSON_OPTION) -> None:
    """Let it learn by itself again."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        was = assistant.learn.release()
        enabled = assistant.learn.enabled
    if json_output:
        print_json({"held": False, "was_held": was})
        return
    typer.echo("It may learn by itself again." if was else "It was not held.")
    if not enabled:
        typer.echo("Learning is off, though: claw-local learn on")


@schedule.command()
def install(json_output: bool = JSON_OPTION) -> None:
    """Set up the timer (systemd, launchd, or Windows' Task Scheduler), or bring it up to date."""
    state = _scheduling().install()
    if json_output:
        print_json(state)
        return
    typer.echo(f"{state.system} looks every few minutes whether it may learn. What that is: claw-local learn status")
    for file in state.files:
        typer.echo(f"  {harmless(str(file))}")
    typer.echo("Undo: claw-local learn schedule remove")


@schedule.command("status")
def schedule_status(json_output: bool = JSON_OPTION) -> None:
    """Say whether the timer is there, and calls what it should."""
    state = _scheduling().status()
    if json_output:
        print_json(state)
    else:
        typer.echo(_said(state))


@schedule.command()
def remove(json_output: bool = JSON_OPTION) -> None:
    """Take the timer away, without a trace."""
    was = _scheduling().remove()
    if json_output:
        print_json({"removed": was})
    else:
        typer.echo("The timer is gone. The open app still learns." if was else "There was no timer.")


def tick(
    home: Path | None = typer.Option(None, "--home", help="The home folder, as in CLAW_LOCAL_HOME."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Look once whether it may learn now, and if so learn until that ends. For the system's timer."""
    from ..assistant import Assistant
    from ..idle.keeper import Keeper
    from ..language import begin
    from ..paths import locate

    begin(locate(home))  # What it notes is read in the app.
    stop = threading.Event()
    for name in ("SIGTERM", "SIGHUP", "SIGINT"):  # The run leaves in order.
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: stop.set())
    with Assistant.open(home) as assistant:
        keeper = Keeper(assistant)
        waits = [condition.words for condition in keeper.once(stop)]
        job = keeper.last_job
        runs = assistant.store.runs.list(limit=1) if job is not None else []
    if json_output:
        print_json({"waits_for": waits, "run": runs[0] if runs else None})
    elif job is None:
        typer.echo(f"Waits for {waits[0]}." if waits else "Nothing to do.")
    else:
        typer.echo(_outcome(job, runs[0] if runs else None))
    if job is not None and job.error is not None and not (runs and runs[0].state == "paused") and not stop.is_set():
        raise typer.Exit(1)


def with_standing(state: Any, standing: Standing) -> dict[str, Any]:
    """`learn status --json`: what it always said, and how learning by itself stands."""
    return {**plain(state), "idle": plain(standing)}


def say_standing(standing: Standing) -> None:
    """How learning by itself stands, for a person."""
    used = f"{standing.used_minutes:.0f} of {standing.daily_minutes:.0f} minutes used today"
    if standing.state == "off":
        typer.echo(f"By itself: no, it waits for {standing.waits_for[0]}")
        return
    if standing.state == "held":
        typer.echo("By itself: held by you. `claw-local learn resume` takes that back.")
    elif standing.state == "running":
        typer.echo(f"By itself: a run goes on ({used}), until you come back.")
    elif not standing.waits_for:
        typer.echo(f"By itself: may begin at any moment, where the app is open or a timer is set up ({used}).")
    else:
        typer.echo(f"By itself: waits ({used})")
    for mark, met, known in (("waits for", False, None), ("ok", True, True), ("unknown", True, False)):
        for one in standing.conditions:
            if one.met is met and known in (None, one.known):
                typer.echo(f"  {mark:<10} {one.words}")


def _after(span: str, wall: datetime) -> datetime:
    found = _FOR.fullmatch(span.strip().lower())
    if found is None or not int(found[1]):
        raise UsageError(f"{span!r} is no time. Write it like 30m, 2h or 3d.")
    return wall + timedelta(**{_UNITS[found[2]]: int(found[1])})


def _scheduling() -> Scheduling:
    from ..idle.schedule import of_this_system
    from ..paths import locate

    return of_this_system(locate())


def _said(state: Scheduled) -> str:
    if not state.installed:
        return "There is no timer: only the open app learns by itself. Set one up: claw-local learn schedule install"
    if not state.current:
        return (
            f"The timer of {state.system} calls something else than it would now. Bring it up to date: "
            "claw-local learn schedule install"
        )
    if not state.active:
        return f"The timer of {state.system} is there but does not run. Mend it: claw-local learn schedule install"
    return f"The timer of {state.system} runs{f', next at {state.next_at}' if state.next_at else ''}."


def _outcome(job: Job, run: Any) -> str:
    if job.result is not None:
        return f"Run {run.id if run else ''}: {job.result.reason}"
    if run is not None and run.state == "paused":
        return f"Run {run.id} left, and goes on later. {run.detail}".strip()
    return harmless(str(job.error or "The run ended."))
