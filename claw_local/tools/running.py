"""Running a command in the workspace: no shell unless asked, bounded in time and output, with a clean environment.

A command can do whatever its owner can: the folder is where it starts, not a wall around it. So it asks each time.
"""

from __future__ import annotations

import atexit
import fnmatch
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from ..language import _
from .arguments import Run, checked, spec_of
from .base import Call, Prepared, Result, ToolError
from .folder import Folder
from .starting import GRACE_S, end, started

KEPT_HEAD = KEPT_TAIL = 32 * 1024
"""Bytes of the output that are kept, at its beginning and at its end."""
_PASSED_ON = (
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TZ TMPDIR TEMP TMP VIRTUAL_ENV CONDA_PREFIX JAVA_HOME GOPATH "
    "CARGO_HOME RUSTUP_HOME XDG_*_HOME SYSTEMROOT WINDIR COMSPEC PATHEXT USERPROFILE HOMEDRIVE HOMEPATH APPDATA "
    "LOCALAPPDATA PROGRAMFILES* PROGRAMDATA NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE"
).split()
"""Variables a command gets. All others stay away: keys and tokens live in them."""


def environment(variables: Mapping[str, str], more: tuple[str, ...] = ()) -> dict[str, str]:
    """What a command gets of these variables. `more`: names the person wants passed on, too; * stands for anything."""
    wanted = (*_PASSED_ON, *more)
    kept = {
        name: value
        for name, value in variables.items()
        if any(fnmatch.fnmatchcase(name.upper(), pattern.upper()) for pattern in wanted)
    }
    return {**kept, "TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


_AT_WORK: set[subprocess.Popen[bytes]] = set()
"""Commands under way in this program."""


@dataclass(frozen=True)
class Running:
    """run in one folder. `timeout_s`: longest that a command may take; `passed_on`: see `environment`."""

    folder: Folder
    timeout_s: float = 60.0
    passed_on: tuple[str, ...] = ()

    specs = (spec_of("run", Run),)

    def prepare(self, call: Call) -> Prepared:
        """What the call would do, with the command as it will be run. Raises ToolError."""
        said = checked(Run, call)
        if any(not letter.isprintable() and letter not in "\n\t" for letter in said.command):
            raise ToolError("The command holds characters that cannot be shown, so nobody can agree to it.")
        command: list[str] | str = said.command
        # Windows takes a command line as it is, and each program reads it by itself.
        if not said.shell and sys.platform != "win32":
            try:
                command = shlex.split(said.command)
            except ValueError as error:
                raise ToolError(f"The command cannot be read: {error}. Mend its quotes.") from error
            if not command:
                raise ToolError("There is no command. Name a program and its arguments.")
        told = command if isinstance(command, str) else "\n".join(map(shlex.quote, command))
        how = _("through the shell:") if said.shell else _("without a shell:")
        where = _("in {folder}", folder=self.folder.root)
        preview = f"{how}\n{told}\n{where}"

        def perform(stop: threading.Event | None) -> Result:
            return self._run(command, said.shell, stop)

        title = f"run {' '.join(said.command.split())}"
        return Prepared(call, title, preview, True, f"run{' shell' * said.shell}: {said.command}", perform)

    def _run(self, command: list[str] | str, shell: bool, stop: threading.Event | None) -> Result:
        with self.folder.at([]):
            pass  # It is still there, and no link.
        process = started(command, shell, self.folder.root, environment(os.environ, self.passed_on))
        _AT_WORK.add(process)
        try:
            output = _Output(process)
            ended = self._wait(process, stop)
        finally:
            # Whatever it left running goes with it, also where Ctrl-C, which it does not hear, ends the waiting.
            end(process)
            _AT_WORK.discard(process)
        text = output.text()
        if ended:
            return Result(
                f"{text}\n[exit code: {process.returncode}]".lstrip("\n"), 1 if process.returncode == 0 else -1
            )
        if stop is not None and stop.is_set():
            return Result(f"{text}\n[stopped by the person]".lstrip("\n"), 0, stopped=True)
        return Result(f"{text}\n[timed out after {self.timeout_s:g} s, and was ended]".lstrip("\n"), -1)

    def _wait(self, process: subprocess.Popen[bytes], stop: threading.Event | None) -> bool:
        """Whether it came to its own end in time."""
        until = time.monotonic() + self.timeout_s
        while True:
            try:
                process.wait(0.05)
                return True
            except subprocess.TimeoutExpired:
                if time.monotonic() > until or (stop is not None and stop.is_set()):
                    return False


class _Output:
    """Reads what a command says, and keeps the beginning and the end of it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._head, self._tail, self._total = bytearray(), bytearray(), 0
        self._lock = threading.Lock()
        self._stream = process.stdout
        self._thread = threading.Thread(target=self._read, daemon=True, name="command output")
        self._thread.start()

    def _read(self) -> None:
        assert self._stream is not None
        with self._stream:
            while chunk := os.read(self._stream.fileno(), 65536):
                with self._lock:
                    self._total += len(chunk)
                    room = KEPT_HEAD - len(self._head)
                    self._head += chunk[:room]
                    self._tail = (self._tail + chunk[room:])[-KEPT_TAIL:]

    def text(self) -> str:
        self._thread.join(GRACE_S)
        with self._lock:
            missing = self._total - len(self._head) - len(self._tail)
            between = f"\n[… {missing:,} bytes left out …]\n".encode() if missing else b""
            said = (bytes(self._head) + between + bytes(self._tail)).decode("utf-8", "replace")
        return "".join(c if c.isprintable() or c in "\n\t" else "" for c in said).rstrip()


@atexit.register
def _end_all() -> None:
    """Nothing that was started here outlives the program: who waits for it may be a thread that ends unasked."""
    for process in list(_AT_WORK):
        end(process)
