"""Programs that begin at once: forked from a process that has imported all they need, and has done nothing else.

Importing is most of what a short command does, and nobody's words are at stake meanwhile; so more of the kills fall
where something is. What is forked is the command itself, in a process, a session and an environment of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

PACKAGES = ("claw_local", "claw_app")
BESIDE = ("llama_cpp", "safetensors.numpy", "uvicorn", "textual.drivers.linux_driver", "textual.widgets.markdown")
"""What is imported late: no module of ours names it at its top."""
_SUBREAPER = 36
"""Of prctl: what its descendants leave becomes its own, so that it can wait for what was forked for it."""


class Forked:
    """A program that was begun here, with as much of `subprocess.Popen` as is needed.

    Attributes:
        pid: its process, which leads a session and a group of its own.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """Its exit status; None while it lives."""
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # Somebody else waited for it.
                self._status = -1
            else:
                self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        end = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0.0)
            time.sleep(0.005)
        return status


class Nursery:
    """The process that forks.

    Args:
        environment: of the process, and so of what reads it while it is imported.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        self._line, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import main; main()"], stdin=theirs, env=environment
        )
        theirs.close()
        if not self._line.recv(64):
            raise RuntimeError("the process that forks could not begin")

    def begin(self, arguments: Sequence[str], environment: dict[str, str], streams: Sequence[int]) -> Forked:
        """Begin `claw-local` with these arguments.

        Args:
            streams: standard input, output and error.
        """
        socket.send_fds(self._line, [json.dumps([list(arguments), environment]).encode()], list(streams))
        return Forked(int(self._line.recv(64)))

    def end(self) -> None:
        self._line.close()
        self._process.wait()


def main() -> None:
    """Import, then fork for each line that is read."""
    line = socket.socket(fileno=os.dup(0))
    for package in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                with contextlib.suppress(Exception):
                    importlib.import_module(module.name)
    for name in BESIDE:
        importlib.import_module(name)
    line.sendall(b"ready")
    while True:
        asked, streams, _, _ = socket.recv_fds(line, 1 << 16, 3)
        if not asked:
            return
        reader, writer = os.pipe()
        between = os.fork()
        if between == 0:
            # What this one leaves belongs to whoever asked for it.
            child = os.fork()
            if child:
                os.write(writer, str(child).encode())
                os._exit(0)
            os.close(reader)
            os.close(writer)
            line.close()
            _become(*json.loads(asked), streams)
            return
        os.close(writer)
        for stream in streams:
            os.close(stream)
        os.waitpid(between, 0)
        line.sendall(os.read(reader, 64))
        os.close(reader)


def _become(arguments: list[str], environment: dict[str, str], streams: list[int]) -> None:
    """Be that command, as if it had just been started."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc] # noqa: SIM115
    on_terminal = os.isatty(1)
    sys.stdout = sys.__stdout__ = open(1, "w", 1 if on_terminal else -1, "utf-8", closefd=False)  # type: ignore[misc] # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, "utf-8", closefd=False)  # type: ignore[misc] # noqa: SIM115
    sys.argv = ["claw-local", *arguments]
    from claw_local.__main__ import main as command

    command()
