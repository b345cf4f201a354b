"""The learning switch, its state, and a run on demand. It must never hold maths: the trainer does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..adapters.watch import fallen, live_scores
from ..engine.models import model_sha256
from ..errors import LearnError, ModelError, UsageError
from ..language import _, ngettext
from ..memory import likes
from ..signals.preferences import Preference
from ..signals.scores import Scored, over_time
from ..store import Hint, Run
from ..store.records import StartedBy
from . import kept, records
from .failures import person_asked
from .job import Job, LearnResult, Progress
from .records import Held

if TYPE_CHECKING:
    from ..assistant import Assistant
    from .keeper import Keeper
    from .standing import Standing

SWITCH = "learning"
NOTICE = "notice"


@dataclass(frozen=True)
class LearnStatus:
    """What `learn status` shows.

    Attributes:
        lessons: replies with a lesson (a thumb, a hint, a correction or a verdict) that no accepted run has used yet.
        waiting: replies that may hold one more, but that the judge has not read yet. None is counted in both.
        silent: replies written while learning was off; they do not teach.
        adapter: id of the adapter in use; 0 is the base model.
        run: the run going on, if any, else the last one.
        notice: what happened by itself and the person has not been told yet, such as a rollback; else "".
        news: what a run that began by itself has changed, as long as the person has not been told; else "".
        held: whether the person lets nothing be learned by itself for now.
    """

    enabled: bool
    lessons: int
    waiting: int
    silent: int
    hints: tuple[Hint, ...]
    adapter: int
    run: Run | None
    notice: str = ""
    news: str = ""
    held: bool = False


class Learning:
    """`assistant.learn`: on, off, status, now."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant
        self._store = assistant.store

    @property
    def enabled(self) -> bool:
        """Whether what is written from now on may teach. Off until the person turns it on; all programs see it."""
        return self._store.flags.get(SWITCH) == "on"

    def on(self, *, past: bool = False) -> int:
        """Let chats teach from now on; with `past`, also those held while learning was off. Returns how many."""
        self._store.flags.set(SWITCH, "on")
        return self._store.messages.let_past_teach() if past else 0

    def off(self) -> Run | None:
        """Stop judging and learning; a run that goes on leaves, whoever began it. Hints and adapters stay; `hints off`
        and `adapters use base` take them out.

        Returns:
            The run that leaves now, else the one that is paused: it goes on only once learning is on again.
        """
        self._store.flags.set(SWITCH, "off")
        run = self._store.runs.running()
        if run is not None:
            self._store.runs.ask(run.id, "leave")
        return run or next(iter(self._store.runs.paused()), None)

    def status(self) -> LearnStatus:
        self._store.runs.bury()
        runs = self._store.runs.list(limit=1)
        try:
            active = self._assistant.adapters.active()
        except ModelError:
            active = None
        return LearnStatus(
            enabled=self.enabled,
            lessons=self._store.samples.count_waiting(),
            waiting=self._store.samples.count_unjudged(),
            silent=self._store.messages.count_silent(),
            hints=tuple(hint for hint in self._store.hints.list() if hint.scope != "turn"),
            adapter=active.id if active else 0,
            run=self._store.runs.running() or (runs[0] if runs else None),
            notice=self._store.flags.get(NOTICE) or "",
            news=records.news(self._store),
            held=records.held(self._store, datetime.now(UTC)) is not None,
        )

    def standing(self) -> Standing:
        """How learning by itself stands: what it waits for, measured just now, which takes about a second."""
        from .standing import standing  # What measures the machine is loaded by whoever asks for it.

        return standing(self._assistant)

    def keeper(self) -> Keeper:
        """Who keeps watch, and lets it learn by itself while nobody is there."""
        from .keeper import Keeper

        return Keeper(self._assistant)

    def take_news(self) -> str:
        """What a run that began by itself has changed; from now on the person has been told. "" if nobody has to be."""
        with self._store.database.write():
            told = records.news(self._store)
            if told:
                records.put_news(self._store, "")
        return told

    def hold(self, until: datetime | None = None) -> Held:
        """Let nothing be learned by itself until `release`, or until then, also across restarts. A run that began by
        itself leaves; one that the person began goes on."""
        held = records.hold(self._store, datetime.now(UTC), until)
        run = self._store.runs.running()
        if run is not None and run.started_by == "idle":
            self._store.runs.ask(run.id, "leave")
        return held

    def release(self) -> bool:
        """Take `hold` back; whether it was held."""
        return records.release(self._store)

    def scores(self, *, limit: int = 2000) -> list[Scored]:
        """What the newest replies that were reacted to were worth, oldest first."""
        return over_time(self._store, limit=limit)

    def runs(self, *, limit: int = 50) -> list[Run]:
        """The training runs, newest first."""
        self._store.runs.bury()
        return self._store.runs.list(limit=limit)

    def watch(self) -> str:
        """Roll the adapter in use back if the person takes its replies clearly worse than those before it.

        Returns:
            A sentence about it, which `status()` shows until `noticed()`; "" if all is well.
        """
        with self._store.database.write():  # One of the programs that are open does it, once.
            record = self._assistant.adapters.active()
            fall = fallen(*live_scores(self._store, record)) if record is not None else None
            if record is None or fall is None:
                return ""
            self._assistant.adapters.rollback()
            words = fall.sentence(record.id)
            self._store.adapters.update(record.id, reason=words)
            self._store.flags.set(NOTICE, words)
        return words

    def noticed(self) -> None:
        """The person has been told."""
        self._store.flags.set(NOTICE, "")

    def likes(self) -> list[Preference]:
        """What the person likes, as far as it can be verified of a text, each with its evidence."""
        lasting = [hint.text for hint in self._store.hints.list(state=None)[::-1] if _holds(hint)]
        return likes.likes(self._store, lasting)

    def deny(self, words: str) -> None:
        """Say that something in `likes()` is not so. Raises UsageError: these words are not there."""
        known = [preference.words for preference in self.likes()]
        if words not in known:
            raise UsageError(
                _(
                    "“{words}” is not among what is known of your likes: {names}.",
                    words=words,
                    names="; ".join(known) or _("nothing"),
                )
            )
        likes.deny(self._store, words)

    def allow(self, words: str) -> None:
        """Take back `deny`. Raises UsageError: it was not denied."""
        if words not in likes.denied(self._store):
            raise UsageError(
                _(
                    "“{words}” was not denied: {names}.",
                    words=words,
                    names="; ".join(likes.denied(self._store)) or _("nothing was"),
                )
            )
        likes.allow(self._store, words)

    def paused(self) -> kept.Paused:
        """The run that was left and that the next start goes on with, and why others no longer can. Raises
        ModelError: no model."""
        assistant = self._assistant
        sha256 = model_sha256(assistant.model_path, assistant.paths.data)
        return kept.find(self._store, assistant.paths, assistant.settings, sha256)

    def given_up(self) -> tuple[str, ...]:
        """Drop paused runs that can go on no more, because something was changed just now; a sentence about each."""
        try:
            return self.paused().dropped if self._store.runs.paused() else ()
        except ModelError:  # Without a model it is seen at the next start.
            return ()

    def still_taught(self, hint_id: int) -> Run | None:
        """The paused run that was begun with a hint that holds everywhere: it teaches it also when that is switched off
        meanwhile."""
        return kept.begun_with(self._store, self._assistant.paths, hint_id)

    def start(self, started_by: StartedBy = "idle") -> Job:
        """Start to learn from what was said since the last accepted run, or go on with a run that was left. The caller
        follows the job, or lets it leave.

        Raises:
            LearnError: learning is off, there is nothing to learn, the trainer is not installed, or another run goes
                on. ModelError: no model.
        """
        if not self.enabled:
            raise LearnError(_("Learning is off, so no chat may teach. Turn it on with: claw-local learn on"))
        model = self._assistant.model_path
        anew, newest = self.paused().run is None, self._store.samples.newest()
        if anew:
            self._assistant.wait_judged(timeout_s=60.0)
            status = self.status()
            if status.lessons + status.waiting < self._assistant.settings.learning.min_lessons:
                raise LearnError(_nothing(status))
        self._assistant.handing.before_run(model)
        job = Job.start(self._store, self._assistant.paths, self._assistant.settings, model, started_by=started_by)
        if anew:
            records.remember_began(self._store, newest)
        return job

    def follow(
        self,
        job: Job,
        on_progress: Callable[[Progress], None] | None = None,
        cancel: threading.Event | None = None,
        leave: threading.Event | None = None,
    ) -> LearnResult:
        """Watch a job to its end. Arguments and errors as for `now`."""
        result = LearnResult(**job.follow(on_progress, cancel, leave).result)
        records.remember_tried(self._store)
        return result

    def now(
        self,
        on_progress: Callable[[Progress], None] | None = None,
        cancel: threading.Event | None = None,
        leave: threading.Event | None = None,
    ) -> LearnResult:
        """Learn now, because the person says so, and put the new adapter into use if the gate lets it.

        Args:
            cancel: set to stop the run and throw away what it has reached.
            leave: set to leave it: the next start goes on from there.

        Raises:
            LearningPaused: it was left. LearnError: as for `start`, or the run failed or was stopped.
                ModelError: no model.
        """
        job = self.start("person")
        person_asked(self._store)
        return self.follow(job, on_progress, cancel, leave)


def _holds(hint: Hint) -> bool:
    return hint.state != "dropped" and hint.scope == "everywhere"


def _nothing(status: LearnStatus) -> str:
    text = _("There is nothing new to learn yet. Chat on, and say what you would like different or what pleased you.")
    if status.silent:
        text += " " + ngettext(
            "{number} reply was written while learning was off; `claw-local learn on --past` lets it teach too.",
            "{number} replies were written while learning was off; `claw-local learn on --past` lets them teach too.",
            status.silent,
        )
    return text
