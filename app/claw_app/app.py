"""The app: opens the assistant, shows the chat's screen, and leaves. It must never hold what the assistant knows."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from textual import events
from textual.app import App, ScreenStackError, SystemCommand
from textual.geometry import Size
from textual.markup import escape
from textual.screen import Screen
from textual.theme import ThemeProvider

from claw_local.errors import ClawError
from claw_local.language import _

from .background import Background
from .escapes import behind_escape
from .gate import Before, Gate
from .launch import hung_up, in_browser, when_ended
from .notices import Notices
from .palette import CommandPalette
from .screens.by_itself import Watch
from .screens.front import Front
from .styles import CHAT
from .themes import DARK, LIGHT, Look, variable_defaults

if TYPE_CHECKING:
    from claw_local.assistant import Assistant

    from .screens.chat import ChatScreen

T = TypeVar("T")
_TWICE_S = 2.0
_TIDY_S = 0.5
FIT_EVERY_S = 1.0


class ClawApp(Notices):
    """The chat in the terminal.

    Args:
        open_assistant: called once, in a thread, after the first paint.
        chat_id: the chat to open first; None opens a new one.
        workspace: the folder that its tools may touch; empty changes nothing.
        debug: let unexpected errors through with their traceback.
        look: the themes there are, and the chosen one.
        front: paint the chat's frame before the chat is put together, which takes longer.
    """

    TITLE = "claw-local"
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (11, "-tall")]  # noqa: RUF012
    CLOSE_TIMEOUT = 0.5

    def __init__(
        self,
        open_assistant: Callable[[], Assistant],
        *,
        chat_id: int | None = None,
        workspace: str = "",
        debug: bool = False,
        look: Look | None = None,
        front: bool = False,
    ) -> None:
        # Without colours (NO_COLOR) means without any, not in shades of grey: styles/plain.tcss shows what is chosen.
        super().__init__(
            ansi_color=True if os.environ.get("NO_COLOR") else None,
            # Of a default screen, Textual does not read the styles itself.
            css_path=None if front else list(CHAT),
        )
        self.look = look if look is not None else Look()
        self.background = Background()
        self.watcher = Background()
        self.watch_over = Watch()
        self.gate = Gate(self)
        self.debug_errors = debug
        self._front = front
        self.opening_error: BaseException | None = None
        self.loaded = False
        self.leaving = False
        self._open_assistant = open_assistant
        self._first_chat, self._first_workspace = chat_id, workspace
        self._opened: asyncio.Future[Assistant] | None = None
        self._interrupted_at = 0.0
        self._said: dict[str, str] = {}
        # What is typed before there is a field to type in; None once there is one.
        self._typed_ahead: list[events.Key | events.Paste] | None = []

    @property
    def main(self) -> ChatScreen:
        """The chat's screen, also while a dialog covers it. Raises ScreenStackError: the app is being closed."""
        from .screens.chat import ChatScreen

        for screen in self.screen_stack:
            if isinstance(screen, ChatScreen):
                return screen
        raise ScreenStackError("The chat's screen is closed.")

    def get_default_screen(self) -> Screen[Any]:
        """The chat is the first screen, or its frame."""
        return Front(self._chat_screen) if self._front else self._chat_screen()

    def _chat_screen(self) -> ChatScreen:
        from .screens.chat import ChatScreen

        return ChatScreen(self._first_chat, self._first_workspace)

    def on_load(self) -> None:
        self._opened = asyncio.get_running_loop().create_future()
        self.look.dress(self)
        if not self.is_headless:
            ended = when_ended(self._end)
            self.set_interval(FIT_EVERY_S, partial(self._see_page, ended) if in_browser() else self._fit)

    def _see_page(self, ended: Callable[[], None]) -> None:
        """A server that was killed says no goodbye, and Textual goes on for nobody then."""
        if not self.leaving and sys.__stdin__ is not None and hung_up(sys.__stdin__.fileno()):
            ended()

    def _fit(self) -> None:
        """Take the terminal's size as it is: the signal that tells of a change may come to nothing."""
        with suppress(OSError, ValueError, AttributeError):
            size = Size(*os.get_terminal_size(sys.__stdout__.fileno()))  # type: ignore[union-attr]
            if size and size != self.size:
                self.post_message(events.Resize(size, size))

    def on_unmount(self) -> None:
        """The last of it: no thread of the app's own stays."""
        self.watch_over.end()
        for threads in (self.background, self.watcher):
            threads.close()

    async def on_event(self, event: events.Event) -> None:
        """As usual, but what is typed before the field is there waits for it."""
        self.watch_over.see(event)
        if self._typed_ahead is not None and isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            self._typed_ahead.append(event)
        elif self.gate.shut and isinstance(event, (events.Key, events.Paste)) and not event.is_forwarded:
            self.gate.keep(event)
        elif isinstance(event, (events.Key, events.Paste, events.MouseDown)) and not event.is_forwarded:
            await self._take(event)
        else:
            await super().on_event(event)

    async def _take(self, event: events.Key | events.Paste | events.MouseDown) -> None:
        """Deal with what a person does, in its order."""
        left = True
        if self._typed_ahead is None:
            if isinstance(event, events.Key) and (typed := self._behind_escape(event)) is not None:
                await self._press(events.Key("escape", "\x1b"))
                await self.on_event(typed)
                return
            # Where letters are commands, a key may be writing, or may be kept until that is known.
            first, left = self.main.sort_out(event, self._press)
            if first is not None:
                await self._press(first)
                if left and self.gate.shut and not isinstance(event, events.MouseDown):
                    self.gate.keep(event)
                    return
        if left and isinstance(event, events.Key):
            before = self.gate.look(event) if self._typed_ahead is None else None
            await super().on_event(event)
            self._wait_for(before)
        elif left:
            await super().on_event(event)

    def _wait_for(self, before: Before | None) -> None:
        """Let the next key wait until what this one opens is there; unless it waits already."""
        if before is not None and not self.gate.shut:
            self.gate.close(before)

    def _behind_escape(self, key: events.Key) -> events.Key | None:
        """What was typed at once behind the Esc that leaves a dialog or a page; None if this is another key."""
        typed = behind_escape(key)
        covered = typed is not None and self.screen is not self.main
        return typed if covered and key.key not in self.screen.active_bindings else None

    async def _press(self, key: events.Key) -> None:
        """Do what a key is bound to now, not once it has been to the widget and back."""
        before = self.gate.look(key)
        if not await self._check_bindings(key.key):
            await super().on_event(key)
        self._wait_for(before)

    def take_typed_ahead(self) -> None:
        """The field is there: give it what was typed before."""

        async def take() -> None:
            waiting, self._typed_ahead = self._typed_ahead or [], None
            for event in waiting:
                await super(ClawApp, self).on_event(event)

        self.call_later(take)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """What our styles need beside Textual's variables, for every theme."""
        return variable_defaults(self.current_theme)

    # The assistant

    async def open(self) -> Assistant | None:
        """Open the assistant. On failure the app ends, `opening_error` says why, and None is returned."""

        def opening() -> Assistant:
            assistant = self._open_assistant()
            try:
                if self._first_chat is not None:
                    assistant.chat(self._first_chat)
                if self._first_workspace:
                    self._first_workspace = assistant.tools.checked(self._first_workspace)
            except ClawError:
                assistant.close()
                raise
            return assistant

        try:
            assistant = await self.background.slow(opening)
        except Exception as error:
            self.opening_error = error
            self.exit(return_code=getattr(error, "exit_code", 1))
            return None
        self.loaded = assistant.loaded
        cast("asyncio.Future[Assistant]", self._opened).set_result(assistant)
        return assistant

    async def home(self) -> Assistant:
        """The person's own assistant, once it is open: their chats, hints, adapters and learning."""
        return await asyncio.shield(cast("asyncio.Future[Assistant]", self._opened))

    async def assistant(self) -> Assistant:
        """The assistant of the open chat: the person's own, or the one that an incognito chat lives in."""
        home = await self.home()
        return self.main.private or home

    @property
    def opened(self) -> Assistant | None:
        """The person's own assistant, if it is open."""
        return self._opened.result() if self._opened is not None and self._opened.done() else None

    def take_assistant(self) -> Assistant | None:
        """The assistant, if it was opened; to close it after the app has ended."""
        return self.opened

    async def quick(self, function: Callable[..., T], *args: Any, **options: Any) -> T | None:
        """Call the assistant where it cannot freeze the screen. An error is shown, and None returned."""
        try:
            return await self.background.quick(function, *args, **options)
        except Exception as error:
            self.fail(error)
            return None

    def _load_screen_css(self, screen: Screen[Any]) -> None:
        """A page is about to be shown: it knows from its first paint on how wide and how high the terminal is."""
        super()._load_screen_css(screen)
        for size, own, general in (
            (self.size.width, screen.HORIZONTAL_BREAKPOINTS, self.HORIZONTAL_BREAKPOINTS),
            (self.size.height, screen.VERTICAL_BREAKPOINTS, self.VERTICAL_BREAKPOINTS),
        ):
            screen.add_class(*screen._get_breakpoint_classes(size, (general if own is None else own) or []))

    # What works everywhere

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Everything in the table of commands, and every chat: what slash commands can do too."""
        from .commands import COMMANDS, key_names

        for command in COMMANDS:
            keys = key_names(command)
            yield SystemCommand(
                _(command.title),
                f"{_(command.help)} ({keys})" if keys else _(command.help),
                partial(self.call_later, self.main.run_action, command.action),
            )
        for chat_id, title in self.main.chats.titles():
            yield SystemCommand(
                # The palette reads markup; a title is what somebody said.
                _("Open: {title}", title=escape(title)),
                _("Go to this chat"),
                partial(self.call_later, self.main.go_to, chat_id),
                discover=False,
            )

    def action_command_palette(self) -> None:
        """Ctrl+P: everything, by name."""
        if not CommandPalette.is_open(cast("App[object]", self)):
            self.push_screen(CommandPalette(placeholder=_("Search for a command …"), id="--command-palette"))

    def search_themes(self) -> None:
        """Choose the colours from a list."""
        self.push_screen(CommandPalette(providers=[ThemeProvider], placeholder=_("Search for a theme …")))

    def action_help(self) -> None:
        """Show all keys."""
        from .screens.help import Help

        self.push_screen(Help())

    def action_toggle_theme(self) -> None:
        """Change between dark and light."""
        self.theme = LIGHT.name if self.current_theme.dark else DARK.name

    def action_screenshot(self, filename: str | None = None, path: str | None = None) -> None:
        """Save a picture of the screen, once the list that it was chosen from is gone."""
        self.set_timer(0.1, partial(self.deliver_screenshot, filename, path))

    def action_help_quit(self) -> None:
        """Ctrl+C: stop a reply; else throw away what is typed; pressed twice, leave."""
        now = time.monotonic()
        if self.main.live is not None and not self.main.live.stopping:
            self.main.action_stop()
        elif self.screen is self.main and self.main.composer.has_focus and self.main.composer.text:
            self.main.composer.throw_away()
            self.say(_("Thrown away; Ctrl+Z brings it back. Ctrl+C twice quits."), topic="thrown")
        elif now - self._interrupted_at < _TWICE_S:
            self.call_later(self.action_quit)
        else:
            self._interrupted_at = now
            self.say(_("Press Ctrl+C again to quit."), timeout=_TWICE_S)

    async def action_quit(self) -> None:
        """Leave. Only a training run, and what a full disk does not take, are worth a question."""
        at_risk = self.opened is not None and bool(self.opened.store.database.adrift)
        if (at_risk or self.main.stop_learning is not None) and not self.leaving:
            self.run_worker(self._ask_and_leave(), group="quitting", exclusive=True)
        else:
            self._leave()

    async def _ask_and_leave(self) -> None:
        from .screens.ask import Confirm

        questions = []
        if self.opened is not None and await self.background.slow(self.opened.save) is False:
            questions.append(
                _(
                    "The disk is full or fails, and what was said since then is in memory only. If you quit now, it is "
                    "lost: free some space first, and it is saved."
                )
            )
        if self.main.stop_learning is not None:
            questions.append(_("A training run is on. If you quit now, it is left, and the next one goes on with it."))
        if not questions or await self.push_screen_wait(Confirm("\n".join(questions), _("Quit"), _("Stay"))):
            self._leave()

    def _end(self) -> None:
        """Leave, and ask nothing."""
        if self._typed_ahead is None:
            self._leave()
        else:  # There is no chat yet.
            self.exit()

    def _leave(self) -> None:
        self.leaving = True
        self.watch_over.end()
        if self.main.live is not None:
            self.main.live.cancel()
        self.main.stop_tool()
        if self.main.stop_learning is not None:
            self.main.leave_learning.set()
        self.main.stop_naming()
        self.run_worker(self._tidy_and_exit())

    async def _tidy_and_exit(self) -> None:
        """Keep the draft and empty the bin first; a database that is busy elsewhere keeps nobody waiting for it."""

        async def tidy() -> None:
            kept = self.main.keep_draft()
            if kept is not None:
                await kept
            await self.main.purge_deleted()

        try:
            await asyncio.wait_for(tidy(), _TIDY_S)
        except Exception as error:
            self.log.error(f"not tidied: {error}")
        self.exit()
