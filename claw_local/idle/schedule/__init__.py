"""The system's own timer, which lets it learn while no window is open: systemd, launchd, or Windows' Task Scheduler.

What it calls is `claw-local learn tick`, every few minutes: one look at all conditions, and a run while they hold.
"""

from __future__ import annotations

import sys

from ...errors import LearnError
from ...language import _
from ...paths import Paths
from .plan import EVERY_S, Plan, Scheduled, Scheduling, make_plan

__all__ = ["EVERY_S", "Plan", "Scheduled", "Scheduling", "make_plan", "of_this_system"]


def of_this_system(paths: Paths) -> Scheduling:
    """How this system is told to call it.

    Raises:
        LearnError: there is no such thing here.
    """
    plan = make_plan(paths)
    if sys.platform == "darwin":
        from .launchd import Launchd

        return Launchd(plan)
    if sys.platform == "win32":
        from .windows import TaskScheduler

        return TaskScheduler(plan)
    if sys.platform.startswith("linux"):
        from .systemd import Systemd

        return Systemd(plan)
    raise LearnError(
        _(
            "This system has no timer that is known here. Let one of your own call, every few minutes: {command}",
            command=" ".join(plan.command),
        )
    )
