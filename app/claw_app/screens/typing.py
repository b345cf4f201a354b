"""What the field asks for: files to attach, slash commands, the person's editor, what was sent before. Part of the
chat's screen; it must never send a message itself."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.app import SuspendNotSupported
from textual.screen import Screen

from claw_local.errors import UsageError
from claw_local.language import _

from ..commands import meant
from ..text import clean, one_line
from ..widgets.composer import Composer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.theme import Theme

    from ..app import ClawApp
    from ..widgets.completion import Completions

_EDITORS = ("nano", "vim", "vi", "notepad") if sys.platform != "win32" else ("notepad",)
LONGEST_SHOWN = 100_000
"""Characters. More than that, from an editor, stands in the field as one label: it would be slow at every key."""


class TypingActions(Screen[None]):
    """Serves the field."""

    if TYPE_CHECKING:
        composer: Composer

        @property
        def claw(self) -> ClawApp: ...
        def with_words(self) -> dict[str, Callable[[str], Awaitable[object]]]: ...
        def with_values(self) -> dict[str, Callable[[str], Awaitable[object]]]: ...
        async def carry_out(self, action: Callable[[str], Awaitable[object]], words: str) -> None: ...

    def on_mount(self) -> None:
        self.call_after_refresh(lambda: self.run_worker(self._recall()))
        self.app.theme_changed_signal.subscribe(self, self._theme_changed)
        self.watch(self.app, "app_focus", self._app_focused, init=False)
        for problem in self.claw.look.problems:
            self.claw.say(problem, severity="warning", timeout=10)

    def _app_focused(self, focused: bool) -> None:
        """A page in a browser gets the focus after the app has begun: nothing has it then, so the field takes it."""
        if focused and self.is_current and self.focused is None:
            self.set_focus(self.composer)

    async def _recall(self) -> None:
        """What was sent in earlier chats, for the Up key."""
        home = await self.claw.home()
        said = await self.claw.quick(home.said)
        if said:
            self.composer.remember(said)

    # Attachments

    @on(Composer.Wanted)
    def _wanted(self, event: Composer.Wanted) -> None:
        self.run_worker(self._attach_file(event.path, event.token))

    @on(Composer.Missing)
    def _missing(self, event: Composer.Missing) -> None:
        self.run_worker(self._say_missing(event.path))

    async def _say_missing(self, path: str) -> None:
        from ..attachments import refused

        why = await self.claw.background.slow(refused, path, self.composer.workspace)
        words = _("{why} Enter again sends it as plain words.", why=why)
        self.claw.say(words.lstrip(), severity="warning", timeout=8)

    async def _attach_file(self, path: str, token: str) -> None:
        from ..attachments import read

        try:
            attachment = await self.claw.background.slow(read, path, self.composer.workspace)
        except Exception as error:
            self.claw.say(self.claw.sentence(error), title=_("Not attached"), severity="warning", timeout=8)
        else:
            self.composer.attach(token, attachment.name, attachment.text)

    def action_attach_file(self) -> None:
        """Begin a path at the cursor; the list of files opens."""
        self.composer.focus()
        before = self.composer.before_cursor()
        self.composer.insert_here("@" if not before or before[-1].isspace() else " @")

    # Slash commands

    @on(Composer.Commanded)
    async def _commanded(self, event: Composer.Commanded) -> None:
        event.stop()
        command = meant(event.name)
        if command is None and not event.name.strip():
            return  # A slash alone: the list of commands is open, and one of them is still to be chosen.
        if command is None:
            name = one_line(event.name)
            self.claw.say(
                _(
                    "There is no command /{name}. A slash alone lists them, /help explains them; "
                    "two slashes at the beginning send one.",
                    name=name,
                ),
                timeout=8,
            )
            return
        if not event.words:
            self.composer.take(event.field)
            # Later: the action may want this handler to be done.
            self.call_later(self.run_action, command.action)
            return
        with_words = self.with_words().get(command.action)
        with_value = self.with_values().get(command.action) if event.value else None
        if with_words is None:
            self.claw.say(
                _("/{slash} stands alone. To send this as a message, begin it with two slashes.", slash=command.slash)
            )
            return
        self.composer.take(event.field)
        self.run_worker(self.carry_out(*((with_value, event.value) if with_value else (with_words, event.words))))

    def _theme_changed(self, theme: Theme) -> None:
        if theme.name != self.claw.look.chosen:
            self.claw.look.chosen = theme.name
            self.run_worker(self._keep_theme(theme.name))

    async def _keep_theme(self, name: str) -> None:
        """The next start begins with it."""
        from claw_local.settings_file import set_value

        home = await self.claw.home()
        await self.claw.quick(set_value, home.paths, "app.theme", name)

    # The person's editor

    def action_editor(self) -> None:
        """Go on writing in the person's own editor; what it saves comes back into the field."""
        try:
            command = editor_command()
            folder = Path(tempfile.mkdtemp(prefix="claw-local-"))
        except (UsageError, OSError) as error:
            self.claw.fail(error)
            return
        file = folder / "message.md"
        try:
            file.write_text(self.composer.text, "utf-8")
            with self.app.suspend():
                status = run_editor([*command, str(file)])
            text = _saved(file)
        except UsageError as error:
            self.claw.say(str(error), severity="warning", timeout=8)
        except SuspendNotSupported:
            self.claw.say(_("An editor can only be opened in a terminal."), severity="warning")
        except OSError as error:
            self.claw.say(
                _(
                    "The editor {editor} could not be used: {error}. What you typed is kept. "
                    "Set $VISUAL or $EDITOR to another one.",
                    editor=command[0],
                    error=error.strerror or error,
                ),
                severity="warning",
                timeout=8,
            )
        else:
            if status:
                self.claw.say(_("The editor ended with status {status}, so the text stays as it was.", status=status))
            elif len(text) > LONGEST_SHOWN:
                self.composer.restore(self.composer.chips.message(text))
            else:
                self.composer.text = text
                self.composer.move_cursor(self.composer.document.end)
            self.composer.focus()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def on_completions_taken(self, event: Completions.Taken) -> None:
        """An offer was clicked on."""
        event.stop()
        self.composer.take_offer(event.offer)


def editor_command() -> list[str]:
    """The person's editor, as `$VISUAL` or `$EDITOR` name it, else one that is there. Raises UsageError."""
    for variable in ("VISUAL", "EDITOR"):
        try:
            command = shlex.split(os.environ.get(variable, ""), posix=sys.platform != "win32")
        except ValueError as error:
            raise UsageError(
                _(
                    "${variable} cannot be read as a command: {error}. Set it to your editor.",
                    variable=variable,
                    error=error,
                )
            ) from error
        if command:
            if shutil.which(command[0]) is None:
                raise UsageError(
                    _(
                        "${variable} names {editor}, which is not installed. Set it to another editor.",
                        variable=variable,
                        editor=command[0],
                    )
                )
            return command
    for editor in _EDITORS:
        if shutil.which(editor):
            return [editor]
    raise UsageError(_("No editor was found. Set $EDITOR to yours, for example: export EDITOR=nano"))


def _saved(file: Path) -> str:
    """What the editor left. Raises UsageError."""
    try:
        return clean(file.read_text("utf-8")).rstrip("\n")
    except UnicodeDecodeError as error:
        raise UsageError(_("What the editor saved is no text in UTF-8, so the text stays as it was.")) from error
    except FileNotFoundError as error:
        raise UsageError(_("The editor left no file, so the text stays as it was.")) from error


def run_editor(command: list[str]) -> int:
    """Wait for the editor's end. Ctrl+C meanwhile is the editor's, also where it has a window of its own."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)
