"""Learning runs as text for a person, and the end of their logs. It must never start one."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..language import N_, _

if TYPE_CHECKING:
    from ..store import Run

STATES = {
    "running": N_("running"),
    "paused": N_("paused"),
    "done": N_("done"),
    "failed": N_("failed"),
    "stopped": N_("stopped"),
    "dropped": N_("dropped"),
}
"""What runs are doing, in words."""
LOG_END_BYTES = 1_000_000
"""As much of a log's end is looked at."""


def state(run: Run) -> str:
    """What a run is doing, in words."""
    return _(STATES.get(run.state, run.state))


def tail(file: Path, lines: int) -> list[str]:
    """The last lines of a log; none if there is no such file. Only its end is read."""
    try:
        with file.open("rb") as log_file:
            log_file.seek(max(0, file.stat().st_size - LOG_END_BYTES))
            return log_file.read().decode("utf-8", "replace").splitlines()[-lines:]
    except OSError:
        return []


def row(run: Run) -> tuple[str, ...]:
    """Its line in a list."""
    if run.state == "running":
        said = f"{run.phase} {run.progress:.0%} {run.detail}"
    elif run.state == "done":
        taken, reason = run.result.get("accepted"), run.result.get("reason", "")
        if "after" in run.result:
            said = (
                _("the judge in use: {reason}", reason=reason)
                if taken
                else _("the judge not taken: {reason}", reason=reason)
            )
        else:
            adapter = run.adapter_id or run.result.get("adapter", 0)
            told = {"id": adapter, "reason": reason}
            said = (
                _("adapter {id} in use: {reason}", **told) if taken else _("adapter {id} not taken: {reason}", **told)
            )
    else:
        said = run.detail
    return str(run.id), run.started_at[:16].replace("T", " "), _lasted(run), state(run), said


def _lasted(run: Run) -> str:
    """How long a run took, in minutes and seconds; "" while it goes on."""
    try:
        seconds = (datetime.fromisoformat(run.finished_at) - datetime.fromisoformat(run.started_at)).total_seconds()
    except ValueError:
        return ""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def what_becomes_of(run: Run) -> str:
    """Of the run that was going on, or paused, when learning was turned off."""
    if run.state == "paused" and run.begins_anew:
        return _(
            "Run {id} stays paused: `claw-local learn on`, then `claw-local learn now`, begins it anew.", id=run.id
        )
    if run.state == "paused":
        return _(
            "Run {id} stays paused: `claw-local learn on`, then `claw-local learn now`, goes on with it, from {place}.",
            id=run.id,
            place=run.where,
        )
    if run.checkpoint:
        return _(
            "Run {id}, which is going on, leaves now and keeps what it has reached: `claw-local learn on`, then "
            "`claw-local learn now`, goes on with it.",
            id=run.id,
        )
    return _(
        "Run {id}, which is going on, stops: it has reached nothing yet that could be kept. The lessons stay.",
        id=run.id,
    )
