"""The learning switch and a training run, as seen from the chat's screen."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from textual import on
from textual.message import Message
from textual.screen import Screen

from claw_local.errors import ClawError, LearnError
from claw_local.language import N_, _, ngettext

from ..text import at_home, one_line
from ..widgets.learn_bar import LearnBar
from ..widgets.top_bar import TopBar
from ..widgets.welcome import Welcome
from .ask import Choose
from .forgotten import see_forgotten, see_gone
from .restored import see_restored

if TYPE_CHECKING:
    from claw_local.assistant import Assistant
    from claw_local.idle.job import LearnResult, Progress
    from claw_local.idle.learning import LearnStatus
    from claw_local.store import Run

    from ..app import ClawApp
    from ..widgets.status_line import StatusLine
    from .chat import ChatScreen

MADE_ROOM = N_("The hint “{old}” is off now: “{new}” took its place. Ctrl+T, 2 and Space on it bring it back.")
MADE_ROOM_YOURS = N_(
    "The hint “{old}”, which you had added yourself, is off now: “{new}” took its place. "
    "Ctrl+T, 2 and Space on it bring it back."
)


EXAM = N_("It gives the judge an exam first, once: does the judge read right what you say about replies?")
EXAM_SHARE = 0.02
"""Of a run: until then its phase "exam" is the judge's; later the lessons are judged."""


class LearningActions(Screen[None]):
    """Turns learning on and off, starts a run and stops it, and keeps the status line true."""

    if TYPE_CHECKING:
        status: StatusLine
        top: TopBar

        @property
        def claw(self) -> ClawApp: ...
        async def tell_news(self, state: LearnStatus) -> None: ...

    @dataclass
    class Advanced(Message):
        """The run is further on; comes from its thread."""

        progress: Progress

    stop_learning: threading.Event | None = None
    """Set to stop the run that was started here; None while there is none."""
    leave_learning: threading.Event
    """Set to leave it, so that the next start goes on with it."""
    _asking = 0
    _trouble = ""
    _troubled = False
    _examined = False
    """Whether it was said what the exam is that the run is at."""

    async def refresh_status(self) -> None:
        """Ask how learning stands, and show it."""
        if self.claw.leaving:
            return
        assistant = await self.claw.assistant()
        # A lane of its own: the first question about a big model reads the whole file to know its hash.
        self._asking += 1
        try:
            state = await self.claw.watcher.quick(assistant.learn.status)
            self._say_made_room(self.status.state, state)
            self.status.state = state
            self.query_one(LearnBar).watch_run(state.run)
            self.top.set_learning(state.enabled)
            if state.notice:
                self.claw.say(state.notice, title=_("It learned something wrong"), severity="warning", timeout=15)
                await self.claw.watcher.quick(assistant.learn.noticed)
            await self.tell_news(state)
        except Exception as error:
            self._say_once(error)
        finally:
            self._asking -= 1

    def _say_once(self, error: Exception) -> None:
        """It is asked again in a moment, and says the same as long as nothing is mended."""
        self._troubled = True
        if (words := self.claw.sentence(error)) != self._trouble:
            self._trouble = words
            self.claw.fail(error)

    def _say_made_room(self, before: LearnStatus | None, now: LearnStatus) -> None:
        # Imported here: the first paint needs none of it.
        from claw_local.memory.fast import made_room

        for old, new in made_room(before.hints, now.hints) if before is not None else ():
            yours = old.message_id is None
            self.claw.say(
                _(MADE_ROOM_YOURS if yours else MADE_ROOM, old=one_line(old.text), new=one_line(new.text)),
                severity="warning" if yours else "information",
                timeout=12 if yours else 8,
            )

    async def poll_status(self) -> None:
        """The same, unless the last question is still unanswered: other programs change these things too."""
        if not self._asking:
            self._troubled = False
            screen = cast("ChatScreen", self)
            try:
                if not await see_restored(screen):
                    return
                await self.refresh_status()
                await see_forgotten(screen)
                if not await see_gone(screen):
                    await screen.see_elsewhere()
            except ClawError as error:
                self._say_once(error)
            if not self._troubled:
                self._trouble = ""

    async def action_toggle_learning(self) -> None:
        """Turn learning on or off."""
        assistant = await self.claw.assistant()
        await self._turn(not await self.claw.quick(lambda: assistant.learn.enabled))

    @on(TopBar.Turned)
    async def _turned(self, event: TopBar.Turned) -> None:
        await self._turn(event.on)

    async def _turn(self, on: bool) -> None:
        assistant = await self.claw.assistant()
        run: Run | None = None
        if on:
            await self.claw.quick(assistant.learn.on)
        else:
            run = await self.claw.quick(assistant.learn.off)
        await self.refresh_status()
        enabled = self.status.state.enabled if self.status.state is not None else on
        for welcome in self.query(Welcome):
            welcome.tell(first=welcome.first, learning=enabled, home=at_home(assistant.paths.data))
        if enabled:
            self.claw.say(_("Learning is on: what you say about a reply teaches the assistant."), topic="switch")
            return
        words = _("Learning is off: nothing you say from now on trains the assistant.")
        # Of one that was begun here more is said once it has left.
        if run is not None and self.stop_learning is None:
            words += " " + _what_becomes_of(run)
        self.claw.say(words, timeout=4 if run is None else 10, topic="switch")

    def action_learn_now(self) -> None:
        """Start a training run; while one is on, ask whether to pause it or throw it away."""
        run = self.status.state.run if self.status.state is not None else None
        if self.stop_learning is not None:
            self.run_worker(self._ask_about_run())
        elif run is not None and run.state == "running" and run.started_by == "person":
            self.claw.say(
                _(
                    "Run {id} was begun by another program and goes on. F5 stops only runs that were started here; "
                    "stop that one where it was begun.",
                    id=run.id,
                )
            )
        else:
            self.run_worker(self._learn(), group="training")

    def action_learning_view(self) -> None:
        """Show what was learned: score over time, hints, runs and adapters."""
        self.run_worker(self._show_learned())

    async def _show_learned(self) -> None:
        from .learning_view import LearningView

        await self.app.push_screen_wait(LearningView(await self.claw.home()))
        await self.refresh_status()

    async def _ask_about_run(self) -> None:
        stop, leave = self.stop_learning, self.leave_learning
        home = await self.claw.home()
        run = await self.claw.quick(home.store.runs.running)
        begins = run is None or run.begins_anew
        onward = _("keeps what it has computed; the next run, F5 or one by itself, goes on from there.")
        anew = _("leaves it; it has hardly begun, so F5, or a run by itself, begins it anew.")
        ways = (
            ("p", _("Pause"), anew if begins else onward),
            ("t", _("Throw away"), _("loses what it has computed; your lessons stay for another run.")),
        )
        words = _("A training run is on.")
        if run is not None and run.begins_anew and run.phase == "exam":
            words += " " + _(EXAM)
        said = await self.app.push_screen_wait(Choose(words, ways, _("Go on")))
        if stop is not None and said:
            (leave if said == "p" else stop).set()

    def pause_run(self) -> bool:
        """Let the run that was started here leave, and keep what it has reached. False: there is none."""
        if self.stop_learning is None:
            return False
        self.leave_learning.set()
        return True

    async def _learn(self) -> None:
        from claw_local.idle.ending import LearningPaused

        stop = self.stop_learning = threading.Event()
        leave = self.leave_learning = threading.Event()
        bar = self.query_one(LearnBar)
        bar.begin()
        try:
            assistant = await self.claw.assistant()
            await self.claw.background.slow(self.claw.watch_over.make_room)
            await self._say_what_was_left(assistant)
            result = await self.claw.background.slow(
                assistant.learn.now, lambda progress: self.post_message(self.Advanced(progress)), stop, leave
            )
        except LearningPaused:
            await self._say_paused(assistant)
        except Exception as error:
            if stop.is_set() and isinstance(error, LearnError):  # As the person wanted.
                self.claw.say(self.claw.sentence(error), title=_("Learning stopped"), timeout=8)
            else:
                self.claw.fail(error)
        else:
            self._tell(result)
        finally:
            self.stop_learning = None
            bar.end()
        await self.refresh_status()

    async def _say_what_was_left(self, assistant: Assistant) -> None:
        """A run that was left goes on; one that no longer can is given up, and it is said why."""
        if not assistant.learn.enabled:
            return
        paused = await self.claw.background.slow(assistant.learn.paused)
        self.say_given_up(paused.dropped)
        if (run := paused.run) is not None:
            anew = _("Run {id} begins anew.", id=run.id)
            self.claw.say(anew if run.begins_anew else _("Run {id} goes on from {place}.", id=run.id, place=run.where))

    def say_given_up(self, sentences: Sequence[str]) -> None:
        """Say why paused runs go on no more."""
        for words in sentences:
            self.claw.say(words, title=_("A run is given up"), severity="warning", timeout=12)

    async def _say_paused(self, assistant: Assistant) -> None:
        """The run that was begun here has left before its end: whoever wanted that, it is said how to go on."""
        if self.claw.leaving:
            return
        paused = await self.claw.quick(assistant.learn.paused)
        if paused is None:
            return
        self.say_given_up(paused.dropped)
        if (run := paused.run) is None:
            return
        if await self.claw.quick(lambda: assistant.learn.enabled):
            anew = _("Run {id} was left. F5 begins it anew.", id=run.id)
            onward = _("Run {id} was left. F5 goes on from {place}.", id=run.id, place=run.where)
            words = anew if run.begins_anew else onward
        elif run.begins_anew:
            words = _("Learning was turned off, so run {id} was left. Ctrl+L, then F5, begins it anew.", id=run.id)
        else:
            words = _(
                "Learning was turned off, so run {id} was left; what it has reached is kept. "
                "Ctrl+L, then F5, goes on from {place}.",
                id=run.id,
                place=run.where,
            )
        self.claw.say(words, title=_("Learning paused"), timeout=12)

    def _tell(self, result: LearnResult) -> None:
        work = _(
            "{steps} on {samples} in {time}",
            steps=ngettext("{number} step", "{number} steps", result.steps),
            samples=ngettext("{number} sample", "{number} samples", result.samples),
            time=f"{result.seconds:.0f} s",
        )
        if result.accepted:
            words = _(
                "Adapter {adapter} is in use from your next message on. {reason} ({work})",
                adapter=result.adapter,
                reason=result.reason,
                work=work,
            )
            self.claw.say(words, title=_("Learned"), timeout=12)
        else:
            words = _("The assistant stays as it was. {reason} ({work})", reason=result.reason, work=work)
            self.claw.say(words, title=_("Nothing changed"), severity="warning", timeout=12)

    @on(Advanced)
    def _advanced(self, event: Advanced) -> None:
        progress = event.progress
        self.query_one(LearnBar).advance(progress)
        if progress.phase != "exam" or progress.fraction > EXAM_SHARE:
            self._examined = False
        elif not self._examined:
            self._examined = True
            self.claw.say(_(EXAM), topic="exam", timeout=10)


def _what_becomes_of(run: Run) -> str:
    """Of a run of another program, or a paused one, when learning is turned off."""
    if run.state == "paused":
        if run.begins_anew:
            return _("Run {id} stays paused: Ctrl+L, then F5, begins it anew.", id=run.id)
        return _("Run {id} stays paused: Ctrl+L, then F5, goes on from {place}.", id=run.id, place=run.where)
    return _("Run {id} leaves now and keeps what it has reached: Ctrl+L, then F5, goes on with it.", id=run.id)
