"""How a run's process ended, in words. It must never change anything."""

from __future__ import annotations

import signal
from pathlib import Path

from ..errors import LearnError
from ..language import N_, _
from ..store import Run

KILLED = -9
WITHOUT_A_WORD = ("died", "killed", "memory")
"""Kinds of failures that others noted of a process that was gone."""
STAYS = N_("The adapter in use has not changed.")


class LearningPaused(LearnError):
    """The run was left and goes on later; nothing went wrong."""


def why_it_died(status: int, log: Path) -> str:
    """What ended a process that left no word, to follow a colon."""
    if hasattr(signal, "SIGILL") and status == -signal.SIGILL:
        return _("it used a processor instruction this machine does not have; `claw-local doctor` says how to mend it")
    if status == KILLED:
        return _("it was killed, perhaps because memory ran out; close other programs and try again")
    if status < 0:
        return _("it was ended by signal {signal}", signal=-status)
    try:
        lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    return lines[-1].strip().removesuffix(".") if lines else _("it ended with status {status}", status=status)


def error_of(run: Run, log: Path, *, failed: bool) -> LearnError:
    """What to raise for a run that did not come to its end.

    Args:
        failed: whether it went wrong this time.
    """
    if run.state == "stopped":
        return LearnError(_("The learning run was stopped.") + " " + _(STAYS))
    if run.state == "paused" and not failed:
        if run.begins_anew:
            return LearningPaused(_("Learning is paused. `claw-local learn now` begins it anew."))
        return LearningPaused(_("Learning is paused. `claw-local learn now` goes on from {place}.", place=run.where))
    if failed and run.failures[-1].kind in WITHOUT_A_WORD:
        said = _("The learning run ended early: {why}.", why=run.failures[-1].words) + " " + _(STAYS)
        if run.state == "paused":
            anew = _("`claw-local learn now` begins it anew.")
            said += " "
            said += anew if run.begins_anew else _("`claw-local learn now` goes on from {place}.", place=run.where)
        return LearnError(said + " " + _("Its log is {log}.", log=log))
    if run.detail:
        return LearnError(run.detail)
    return LearnError(_("The learning run failed.") + " " + _(STAYS) + " " + _("Its log is {log}.", log=log))
