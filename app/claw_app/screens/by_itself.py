"""Learning by itself, as seen from the chat's screen: who keeps watch, what is told on coming back, what it waits for.
It must never decide when anything is learned."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual import events
from textual.screen import Screen

from claw_local.errors import ClawError
from claw_local.language import _

if TYPE_CHECKING:
    from claw_local.assistant import Assistant
    from claw_local.idle.keeper import Keeper
    from claw_local.idle.learning import LearnStatus

    from ..app import ClawApp
    from ..widgets.transcript import Transcript

HERE_S = 60.0
"""Whoever pressed a key so lately sees what is said."""
SIGNS = (events.Key, events.Paste, events.MouseEvent)
"""What only somebody who is there can do."""


class Watch:
    """Who keeps watch while the app is open, and when somebody was last seen at it."""

    def __init__(self) -> None:
        self._keeper: Keeper | None = None
        self._seen = time.monotonic()

    @property
    def here(self) -> bool:
        """Whether somebody is at the app now."""
        return time.monotonic() - self._seen < HERE_S

    def begin(self, assistant: Assistant) -> None:
        """Let it learn by itself from now on, while nobody is there. Runs in a thread."""
        self._keeper = assistant.learn.keeper()
        self._keeper.begin()

    def see(self, event: events.Event) -> None:
        """Whatever comes to the app: a key lets a run leave at once."""
        if isinstance(event, SIGNS):
            self._seen = time.monotonic()
            if self._keeper is not None:
                self._keeper.touch()

    def make_room(self) -> None:
        """Wait until a run that began by itself has left. Runs in a thread."""
        if self._keeper is not None:
            self._keeper.make_room()

    def end(self) -> None:
        """The app is being left, and so a run leaves too. Waits for nothing."""
        if self._keeper is not None:
            self._keeper.close(0.0)


class ByItself(Screen[None]):
    """Tells what was learned meanwhile, and what `/learn` with a word asks for."""

    if TYPE_CHECKING:
        transcript: Transcript

        @property
        def claw(self) -> ClawApp: ...
        async def refresh_status(self) -> None: ...
        def pause_run(self) -> bool: ...

    async def tell_news(self, state: LearnStatus) -> None:
        """Say what a run that began by itself has changed, once somebody is there to read it."""
        if state.news and self.claw.watch_over.here and not self.claw.leaving:
            home = await self.claw.home()
            news = await self.claw.watcher.quick(home.learn.take_news)
            if news:  # No other window was quicker.
                self.claw.say(news, title=_("Learned meanwhile"), timeout=12)

    async def learn_as_said(self, words: str) -> bool:
        """`/learn status`, `pause` and `resume`; whether it was one of them."""
        acts = {
            "status": self.action_learning_status,
            "pause": self.action_hold_learning,
            "resume": self.action_release_learning,
        }
        if words not in acts:
            return False
        await acts[words]()
        return True

    async def action_learning_status(self) -> None:
        """Say what learning by itself waits for."""
        home = await self.claw.home()
        try:
            standing = await self.claw.background.slow(home.learn.standing)
        except ClawError as error:
            self.claw.fail(error)
        else:
            await self.transcript.note(standing.sentence)

    async def action_hold_learning(self) -> None:
        """Let nothing be learned by itself; a run that was started here is left, and keeps what it has reached."""
        home = await self.claw.home()
        held = await self.claw.quick(home.learn.hold)
        paused = self.pause_run()  # Once it has left, it is said how to go on with it.
        run = None if paused else await self.claw.quick(home.store.runs.running)
        if held is not None:
            said = _("Nothing is learned by itself until /learn resume.")
            # A run that began by itself leaves, wherever it is; one that somebody began elsewhere is theirs to leave.
            theirs = run is not None and run.started_by == "person"
            goes_on = _("Run {id} was begun by you and goes on.", id=run.id) if run is not None and theirs else ""
            self.claw.say(f"{said} {goes_on}".strip())
        await self.refresh_status()

    async def action_release_learning(self) -> None:
        """Let it learn by itself again."""
        home = await self.claw.home()
        was = await self.claw.quick(home.learn.release)
        if was is not None:
            again = _("It may learn by itself again, while nobody is there.")
            self.claw.say(again if was else _("It was not paused."))
        await self.refresh_status()
