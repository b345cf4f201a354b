"""What the scheduler acts in: the store, the machine, and the runs that it begins. It must never decide when."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ..errors import ClawError
from ..language import _
from . import activity, extra, notes, records
from .clock import Clock, SystemClock
from .conditions import Facts
from .ending import LearningPaused
from .failures import waits_for_person
from .probes import Machine, Probes, Readings
from .scheduler import Job
from .work import LearningJob

if TYPE_CHECKING:
    from ..assistant import Assistant
    from ..store import Run

REST_S = 3600.0
"""How long nothing is begun after a run that failed or was stopped."""


class Surroundings:
    """One assistant's world. Safe to use from the thread that keeps watch; `touch` from any."""

    def __init__(self, assistant: Assistant, *, clock: Clock | None = None, probes: Probes | None = None) -> None:
        self.assistant = assistant
        self.settings = assistant.settings.idle
        self.clock: Clock = clock or SystemClock()
        self.presence = activity.Presence(assistant.store, self.clock)
        self._store = assistant.store
        self._probes: Probes = probes or Machine()
        self.last_job: Job | None = None
        """The run that was begun here last and is over."""

    def facts(self, *, running: bool) -> Facts:
        """See `Facts`. Quick: a few look-ups."""
        store, wall = self._store, self.clock.wall()
        paused = store.runs.paused()
        return Facts(
            enabled=self.assistant.learn.enabled,
            held=until_in_words(records.held(store, wall), wall),
            lessons=new_lessons(self.assistant),
            going_on=_goes_on(paused[0]) if paused else "",
            wish=waits_for_person(store) or "",
            lacking=self._lacking(),
            other_run=not running and store.runs.running() is not None,
            away_s=self.presence.away_s(),
            used_s=records.used_s(store, wall.date()),
            rest_s=records.rest_s(store, wall),
        )

    def readings(self, *, running: bool) -> Readings:
        """Ask all probes: about a second at most, where none hangs."""
        return self._probes.read(self._run_pid() if running else None)

    def here(self, *, desktop: bool) -> bool:
        """Whether somebody is there, or wants no learning: what has to be noticed at once. Quick.

        Args:
            desktop: whether to ask the desktop as well, which takes longer.
        """
        if self.presence.away_s() < self.settings.away_minutes * 60:
            return True
        if records.held(self._store, self.clock.wall()) is not None or not self.assistant.learn.enabled:
            return True
        idle = self._probes.desktop_idle_s().value if desktop else None
        return idle is not None and idle < self.settings.desktop_minutes * 60

    def touch(self) -> None:
        """Somebody is here."""
        if self.presence.touch():
            self.tell()

    def come_back(self) -> None:
        """Begin to load what made room for a run. Returns at once."""
        self.assistant.come_back()

    def tell(self) -> None:
        """Let the other programs see that somebody is here."""
        activity.note(self._store, self.clock.wall())

    def run_by_itself(self) -> bool:
        """Whether a run goes on that began by itself, in whatever program."""
        run = self._store.runs.running()
        return run is not None and run.started_by == "idle"

    def start(self) -> Job:
        """Begin a run, or go on with the one that was left."""
        return LearningJob(self.assistant)

    def used(self, seconds: float) -> None:
        """Count what a run of ours took into today's time."""
        records.add_used(self._store, self.clock.wall().date(), seconds)

    def ended(self, job: Job, *, left: bool) -> None:
        """Keep what a run has changed for the person, and rest after one that went wrong."""
        self.last_job = job
        if job.result is not None:
            notes.tell(self.assistant, job.result)
        elif not left and not isinstance(job.error, LearningPaused) and self._store.runs.running() is None:
            records.rest(self._store, self.clock.wall(), REST_S)

    def _run_pid(self) -> int | None:
        run = self._store.runs.running()
        pid = run.process.partition(":")[0] if run is not None else ""
        return int(pid) if pid.isdigit() else None

    def _lacking(self) -> str:
        missing = extra.missing()
        if missing:
            return _("packages to be installed: {command}", command=extra.as_typed(extra.install_command()))
        try:
            __ = self.assistant.model_path
        except ClawError as error:
            return _("a model that can learn. {error}", error=error)
        return ""


def new_lessons(assistant: Assistant) -> int:
    """Lessons, and turns that may hold one, that no run which came to its end has seen."""
    signal, message = records.tried(assistant.store)
    samples = assistant.store.samples
    return samples.count_waiting(after_signal=signal) + samples.count_unjudged(after_message=message)


def _goes_on(run: Run) -> str:
    if run.begins_anew:
        return _("a run that was left begins anew")
    return _("a run that was left goes on from {place}", place=run.where)


def until_in_words(held: records.Held | None, wall: datetime) -> str:
    """Until when learning by itself is held: "" if it is not."""
    if held is None:
        return ""
    if not held.until:
        return "(claw-local learn resume)"
    until = datetime.fromisoformat(held.until).astimezone(wall.tzinfo)
    day = "" if until.date() == wall.date() else f"{until:%Y-%m-%d} "
    time = f"{day}{until:%H:%M}"
    return _("until {time} (claw-local learn resume)", time=time)
