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
from ..language import _
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
    span: str | None = typer.Option(
        None, "--for", metavar="TIME", help="Only for so long: 30m, 2h, 3d. Else until `resume`."
    ),
    json_output: bool = JSON_OPTION,
) -> None:
    """Hold learning by itself, also across restarts; a run that began by itself leaves, and goes on after `resume`."""
    from ..assistant import Assistant

    until = _after(span, datetime.now().astimezone()) if span is not None else None
    with Assistant.open() as assistant:
        held = assistant.learn.hold(until)
        run = assistant.store.runs.running()
    if json_output:
        print_json({"held": True, "since": held.since, "until": held.until})
        return
    typer.echo(
        _("Nothing is learned by itself. `claw-local learn resume` takes that back.")
        if until is None
        else _(
            "Nothing is learned by itself until {time:%Y-%m-%d %H:%M}. `claw-local learn resume` takes that back.",
            time=until,
        )
    )
    if run is not None and run.started_by == "person":
        typer.echo(_("Run {id} was begun by you and goes on.", id=run.id))


def resume(json_output: bool = JSON_OPTION) -> None:
    """Let it learn by itself again."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        was = assistant.learn.release()
        enabled = assistant.learn.enabled
    if json_output:
        print_json({"held": False, "was_held": was})
        return
    typer.echo(_("It may learn by itself again.") if was else _("It was not held."))
    if not enabled:
        typer.echo(_("Learning is off, though: claw-local learn on"))


@schedule.command()
def install(json_output: bool = JSON_OPTION) -> None:
    """Set up the timer (systemd, launchd, or Windows' Task Scheduler), or bring it up to date."""
    state = _scheduling().install()
    if json_output:
        print_json(state)
        return
    typer.echo(
        _(
            "{system} looks every few minutes whether it may learn. What that is: claw-local learn status",
            system=state.system,
        )
    )
    for file in state.files:
        typer.echo(f"  {harmless(str(file))}")
    typer.echo(_("Undo: claw-local learn schedule remove"))


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
        typer.echo(_("The timer is gone. The open app still learns.") if was else _("There was no timer."))


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
        typer.echo(_("Waits for {what}.", what=waits[0]) if waits else _("Nothing to do."))
    else:
        typer.echo(_outcome(job, runs[0] if runs else None))
    if job is not None and job.error is not None and not (runs and runs[0].state == "paused") and not stop.is_set():
        raise typer.Exit(1)


def with_standing(state: Any, standing: Standing) -> dict[str, Any]:
    """`learn status --json`: what it always said, and how learning by itself stands."""
    return {**plain(state), "idle": plain(standing)}


def say_standing(standing: Standing) -> None:
    """How learning by itself stands, for a person."""
    from rich.cells import cell_len

    used = _("{used:.0f} of {daily:.0f} minutes used today", used=standing.used_minutes, daily=standing.daily_minutes)
    if standing.state == "off":
        typer.echo(_("By itself: no, it waits for {what}", what=standing.waits_for[0]))
        return
    if standing.state == "held":
        typer.echo(_("By itself: held by you. `claw-local learn resume` takes that back."))
    elif standing.state == "running":
        typer.echo(_("By itself: a run goes on ({used}), until you come back.", used=used))
    elif not standing.waits_for:
        typer.echo(
            _("By itself: may begin at any moment, where the app is open or a timer is set up ({used}).", used=used)
        )
    else:
        typer.echo(_("By itself: waits ({used})", used=used))
    marks = ((_("waits for"), False, None), (_("ok"), True, True), (_("unknown"), True, False))
    width = max(10, *(cell_len(mark) for mark, _met, _known in marks))
    for mark, met, known in marks:
        for one in standing.conditions:
            if one.met is met and known in (None, one.known):
                typer.echo(f"  {mark}{' ' * (width - cell_len(mark))} {one.words}")


def _after(span: str, wall: datetime) -> datetime:
    found = _FOR.fullmatch(span.strip().lower())
    if found is None or not int(found[1]):
        raise UsageError(_("{span!r} is no time. Write it like 30m, 2h or 3d.", span=span))
    return wall + timedelta(**{_UNITS[found[2]]: int(found[1])})


def _scheduling() -> Scheduling:
    from ..idle.schedule import of_this_system
    from ..paths import locate

    return of_this_system(locate())


def _said(state: Scheduled) -> str:
    if not state.installed:
        return _("There is no timer: only the open app learns by itself. Set one up: claw-local learn schedule install")
    if not state.current:
        return _(
            "The timer of {system} calls something else than it would now. Bring it up to date: "
            "claw-local learn schedule install",
            system=state.system,
        )
    if not state.active:
        return _(
            "The timer of {system} is there but does not run. Mend it: claw-local learn schedule install",
            system=state.system,
        )
    if not state.next_at:
        return _("The timer of {system} runs.", system=state.system)
    return _("The timer of {system} runs, next at {time}.", system=state.system, time=state.next_at)


def _outcome(job: Job, run: Any) -> str:
    if job.result is not None:
        return _("Run {id}: {reason}", id=run.id if run else "", reason=job.result.reason)
    if run is not None and run.state == "paused":
        left: str = _("Run {id} left, and goes on later.", id=run.id)
        return f"{left} {run.detail}".strip()
    return harmless(str(job.error or _("The run ended.")))
