"""The first steps: which model answers, and what learning would keep. Part of the chat's screen.

They are shown once, below the welcome, and never keep anyone from typing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

from textual import on
from textual.screen import Screen

from claw_local.errors import ClawError
from claw_local.language import _

from ..text import at_home, one_line
from ..widgets.welcome import Welcome
from .ask import Confirm

if TYPE_CHECKING:
    from claw_local.engine.catalog import FoundModel
    from claw_local.engine.pulling import Fetched
    from claw_local.engine.recommended import Recommended

    from ..app import ClawApp
    from ..widgets.composer import Composer
    from ..widgets.status_line import StatusLine

SEEN = "first-steps-seen"


class FirstStart(Screen[None]):
    """Fills in the first steps and does what is chosen there."""

    if TYPE_CHECKING:
        composer: Composer
        status: StatusLine

        @property
        def claw(self) -> ClawApp: ...
        async def go_to(self, chat_id: int | None, message_id: int | None = None) -> None: ...
        async def refresh_status(self) -> None: ...

    _fetching: threading.Event | None = None
    """Set to stop the fetching of a model; None while there is none."""

    @property
    def _welcome(self) -> Welcome | None:
        return next(iter(self.query(Welcome)), None)

    @on(Welcome.Opened)
    def _welcomed(self, event: Welcome.Opened) -> None:
        event.stop()
        self.run_worker(self._offer_first_steps(), group="first-steps", exclusive=True)

    async def _offer_first_steps(self) -> None:
        home = await self.claw.home()
        if not await self.claw.quick(home.noted, SEEN):
            await self._show_first_steps()

    def action_first_steps(self) -> None:
        """Show the first steps again, in a new chat."""
        self.run_worker(self._again(), group="first-steps-again", exclusive=True)

    async def _again(self) -> None:
        await self.go_to(None)
        await self._show_first_steps()

    async def _show_first_steps(self) -> None:
        home = await self.claw.home()
        welcome = self._welcome
        if welcome is None:
            return
        learning = bool(await self.claw.quick(lambda: home.learn.enabled))
        await welcome.add_steps(learning=learning, home=at_home(home.paths.data))
        try:
            found = await self.claw.background.slow(home.models.list)
            worth = await self.claw.background.slow(home.models.recommend)
        except Exception as error:
            welcome.note(self.claw.sentence(error), style="$warning")
        else:
            welcome.show_models(found, worth)

    def skip_first_steps(self) -> bool:
        """Hide the first steps for good. Whether there were any."""
        welcome = self._welcome
        if welcome is None or not welcome.has_steps:
            return False
        self.run_worker(self._skip(welcome))
        return True

    async def _skip(self, welcome: Welcome) -> None:
        await welcome.drop_steps()
        self.composer.focus()
        home = await self.claw.home()
        await self.claw.quick(home.note, SEEN, "yes")

    @on(Welcome.Typed)
    def _typed_there(self, event: Welcome.Typed) -> None:
        event.stop()
        self.composer.focus()
        self.composer.insert_here(event.text)

    @on(Welcome.ModelChosen)
    def _model_chosen(self, event: Welcome.ModelChosen) -> None:
        event.stop()
        model = event.model
        # Told apart by what they have: importing their types would cost the first paint.
        self.run_worker(self._fetch(cast("Recommended", model)) if hasattr(model, "repo") else self._use(model))

    async def _use(self, model: FoundModel) -> None:
        home = await self.claw.home()
        self._note(_("trying {name} …", name=model.name))
        try:
            await self.claw.background.slow(
                home.models.use, "embedded" if model.source == "embedded" else model.chooses
            )
            info = await self.claw.background.slow(home.load)
        except Exception as error:
            self._note(self.claw.sentence(error), style="$warning")
            return
        self.status.model, self.status.trouble = info.name, False
        await self._list_again()
        self._note(_("{name} answers from now on.", name=info.name), style="$success")
        self.composer.focus()
        await self.refresh_status()

    async def _fetch(self, model: Recommended) -> None:
        if self._fetching is not None:
            self._fetching.set()
            return
        question = _(
            "Fetch {name} ({size:.1f} GB, licence {licence}) "
            "from the Hugging Face Hub? Nothing of yours is sent; what came before a stop is kept.",
            name=one_line(model.name),
            size=model.size_bytes / 1e9,
            licence=one_line(model.licence),
        )
        if not await self.app.push_screen_wait(Confirm(question, _("Fetch"), _("Not now"))):
            return
        home = await self.claw.home()
        stop = self._fetching = threading.Event()

        def advance(fetched: Fetched) -> None:
            share = fetched.done_bytes / max(1, fetched.total_bytes)
            self.app.call_later(
                self._note,
                _(
                    "{phase} {name}: {share:.0%}. Enter on it again stops.",
                    phase=_(fetched.phase),
                    name=model.name,
                    share=share,
                ),
                style="$accent",
            )

        try:
            pulled = await self.claw.background.slow(
                lambda: home.models.pull(model.repo, model.file, on_progress=advance, cancel=stop)
            )
            taken = await self.claw.background.slow(home.models.find, str(pulled.path))
        except Exception as error:
            stopped = stop.is_set() and not isinstance(error, ClawError)
            words = _("Stopped. Enter on it goes on where it was.") if stopped else self.claw.sentence(error)
            self._note(words, style="$warning")
        else:
            await self._use(taken)
        finally:
            self._fetching = None

    async def _list_again(self) -> None:
        home = await self.claw.home()
        welcome = self._welcome
        if welcome is not None and welcome.has_steps:
            found = await self.claw.background.slow(home.models.list)
            worth = await self.claw.background.slow(home.models.recommend)
            welcome.show_models(found, worth)

    def _note(self, words: str, *, style: str = "$quiet") -> None:
        if self._welcome is not None and self._welcome.has_steps:
            self._welcome.note(words, style=style)
        elif style != "$quiet" and style != "$accent":
            self.claw.say(words)
