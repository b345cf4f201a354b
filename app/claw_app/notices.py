"""What the app says in passing: notices, errors in a sentence, and where they stand. Part of the app; it must never
know what brought them about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App, ScreenStackError
from textual.css.query import NoMatches
from textual.notifications import Notification, Notify, SeverityLevel
from textual.widget import MountError, Widget
from textual.widgets._toast import Toast, ToastRack
from textual.worker import WorkerFailed

from claw_local.errors import ClawError, NotFoundError, RestoredError
from claw_local.language import _

from .screens.restored import TOPIC
from .text import clean, wrapped

if TYPE_CHECKING:
    from textual import events

    from .screens.chat import ChatScreen

MOST_SAID = 2
"""Notifications shown at once; of more, or of what has no room, the oldest go."""
SAID_CELLS, SAID_ROWS = 54, 0.4
"""The room for them: so many cells, which at 80 columns leave the list of chats free, and this share of the rows."""


class Notices(App[None]):
    """Says things, and what went wrong."""

    if TYPE_CHECKING:
        leaving: bool
        debug_errors: bool
        _typed_ahead: list[events.Key | events.Paste] | None

        @property
        def main(self) -> ChatScreen: ...

    survives = True
    """Whether work in the background that goes wrong leaves the app open; tests want to see it."""
    _said: dict[str, str]
    """The words of the last notice about each topic."""

    # Errors nobody expected

    def _handle_exception(self, error: Exception) -> None:
        """Work that goes wrong ends with a sentence, and not the app; what asks a screen that is being taken down for
        its parts was only late."""
        cause = error.error if isinstance(error, WorkerFailed) else error
        if not self._running and isinstance(cause, NoMatches | ScreenStackError | MountError):
            self.log.error(f"late: {cause!r}")
        elif cause is not error and self.survives and not self.debug_errors and isinstance(cause, Exception):
            self.fail(cause)
        else:
            super()._handle_exception(error)

    # Saying things

    def sentence(self, error: BaseException) -> str:
        """What to tell a person about an error."""
        if isinstance(error, ClawError):
            return str(error)
        if self.debug_errors:
            raise error
        return _(
            "Something unexpected went wrong ({kind}: {error}). What you typed is kept. "
            "Try again; if it happens again, start with --debug and report what it prints.",
            kind=type(error).__name__,
            error=error,
        )

    def fail(self, error: BaseException) -> None:
        """Show an error as a notification."""
        if isinstance(error, NotFoundError) and not self.leaving and self._typed_ahead is None:
            self.run_worker(self._say_missing(error))
        elif not self.leaving:
            topic = TOPIC if isinstance(error, RestoredError) else ""  # More is said of it in a moment.
            self.say(self.sentence(error), title=_("That did not work"), severity="error", timeout=10, topic=topic)

    async def _say_missing(self, error: NotFoundError) -> None:
        """Where the chat itself is gone, that is all there is to say."""
        from .screens.forgotten import TOPIC as LEFT
        from .screens.forgotten import see_gone

        try:
            gone = await see_gone(self.main)
        except ClawError:
            gone = False
        words = self._said.get(LEFT)  # Or it was left before that came, which was said.
        gone = gone or any(one.message == words for one in self._notifications)
        if not gone and not self.leaving:
            self.say(self.sentence(error), title=_("That did not work"), severity="error", timeout=10)

    def say(
        self,
        words: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float = 4,
        topic: str = "",
    ) -> None:
        """Show a notification. The words may come from anywhere: they are cleaned, and never read as markup.

        Args:
            topic: what it is about; what was said about the same before goes, for it is no longer so.
        """
        words = clean(words)
        if topic:
            self.unsay(topic)
            self._said[topic] = words
        self.notify(words, title=title, severity=severity, timeout=timeout, markup=False)

    def unsay(self, topic: str) -> None:
        """What was said about this is no longer so."""
        said = self._said.pop(topic, None)
        for old in [one for one in self._notifications if one.message == said]:
            self._clear_away(old)
            self._unnotify(old)

    def _clear_away(self, old: Notification) -> None:
        """With what it stands in, which Textual leaves there, as an empty place."""
        for toast in self.screen.query(Toast) if self.screen_stack else ():  # None is left where the app is closing.
            if toast._notification == old and isinstance(toast.parent, Widget):
                toast.parent.remove()

    def _refresh_notifications(self) -> None:
        """As Textual does it; but the rack may stand within the chat, and only the screen on top shows them: through a
        dialog, the one under it can be seen too."""
        for screen in self.screen_stack if self.screen_stack else ():
            for rack in screen.query(ToastRack):
                if screen is not self.screen:
                    rack.display = False
                    continue
                if rack.has_class("-placed") and not rack.display:
                    self.main.place_notices(rack, sum(map(self._rows, self._notifications)))
                self.call_later(self._show_on_top, rack)

    def _show_on_top(self, rack: ToastRack) -> None:
        """Show them, unless a dialog has come over this place meanwhile."""
        if rack.is_attached and self.screen_stack and rack.screen is self.screen:
            for toast in rack.query(Toast):
                if toast._notification not in self._notifications and isinstance(toast.parent, Widget):
                    toast.parent.remove()  # It went while this was hidden.
            rack.show(self._notifications)

    def _on_notify(self, event: Notify) -> None:
        """Before Textual shows it: the same words stand there once, and no more than a few at all."""
        new, there = event.notification, list(self._notifications)
        same = [one for one in there if (one.message, one.title) == (new.message, new.title)]
        others = [one for one in there if one not in same]
        kept = others[1 - MOST_SAID :]
        while kept and sum(map(self._rows, [*kept, new])) > self.size.height * SAID_ROWS:
            del kept[0]
        for old in there:
            if old not in kept:
                self._clear_away(old)
                self._unnotify(old, refresh=False)

    def _rows(self, said: Notification) -> int:
        """How many rows a notification takes, as styles/dialogs.tcss lays it out."""
        racks = self.screen.query(ToastRack)
        room = racks.first().parent.size.width if racks else 0  # type: ignore[union-attr]
        return bool(said.title) + len(wrapped(said.message, max(1, min(SAID_CELLS, room or self.size.width) - 3)))
