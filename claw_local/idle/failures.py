"""When learning must not be tried again by itself: it went wrong twice in the same way. It must never start anything.

What a run is about stands in the store, so that every program comes to the same answer.
"""

from __future__ import annotations

from ..language import _
from ..store import Run, Store
from ..store.database import now
from ..store.records import RunFailure

ASKED = "learning.asked_at"
"""The flag that holds when the person last said `learn now`."""
LOOKED_AT = 20
"""Runs that are looked at, newest first."""
OFTEN = 2
"""So many failures in the same way are enough."""


def waits_for_person(store: Store) -> str | None:
    """Why learning waits for the person, in a sentence; None: it may be started by itself.

    It waits if the last two failures were the same (error, phase, step and inputs), no run succeeded since, and the
    person has not said `learn now` since.
    """
    store.runs.bury()
    found = _failures(store.runs.list(limit=LOOKED_AT))
    if len(found) < OFTEN:
        return None
    run, last = found[0]
    if not all(last.same(failure) for __, failure in found[1:OFTEN]):
        return None
    if (store.flags.get(ASKED) or "") > last.at:
        return None
    return _(
        "Learning went wrong {times} times in the same way ({words}), so it is not tried again by itself. "
        "`claw-local learn log {run}` shows what happened, `claw-local learn now` tries again.",
        times=OFTEN,
        words=last.words,
        run=run.id,
    )


def person_asked(store: Store) -> None:
    """The person said `learn now`: what went wrong before is tried again."""
    store.flags.set(ASKED, now())


def times_alike(run: Run) -> int:
    """How many of a run's failures at its end were the same."""
    count = 0
    for failure in reversed(run.failures):
        if not failure.same(run.failures[-1]):
            break
        count += 1
    return count


def _failures(runs: list[Run]) -> list[tuple[Run, RunFailure]]:
    """Those since the last run that succeeded, newest first."""
    found: list[tuple[Run, RunFailure]] = []
    for run in runs:
        if run.state == "done":
            break
        found += [(run, failure) for failure in run.failures]
    return sorted(found, key=lambda pair: pair[1].at, reverse=True)
