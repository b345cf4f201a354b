"""The programs that get killed: real commands in processes of their own, some on a terminal. It must never judge."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from claw_local.store.unlocking import VARIABLE

from .nursery import Forked, Nursery

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "claw_local")


_ESCAPES = re.compile(rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b[\]P][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.")


def drawn(said: bytes) -> bytes:
    """What a terminal was given, without what moves the cursor and colours: words that were drawn in one go."""
    return _ESCAPES.sub(b"", said)


def environment(home: Path) -> dict[str, str]:
    parts = [str(ROOT), str(ROOT / "app"), str(ROOT / "trainer")]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLAW_LOCAL_") or name == VARIABLE}
    return {
        **kept,
        "CLAW_LOCAL_HOME": str(home),
        "PYTHONPATH": os.pathsep.join(parts),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TERM": "xterm-256color",
        "COLUMNS": "100",
        "LINES": "30",
    }


class Program:
    """A command that runs, with all it says read as it comes.

    Args:
        arguments: of `claw-local`.
        on_terminal: give it a pseudo-terminal of 100 by 30.
        nursery: begin it there.
    """

    def __init__(
        self, home: Path, arguments: Sequence[str], *, on_terminal: bool = False, nursery: Nursery | None = None
    ) -> None:
        self.began = time.monotonic()
        self._said = bytearray()
        self._guard = threading.Lock()
        self.keyboard = -1
        if on_terminal:
            source, theirs = pty.openpty()
            _size(source)
            streams = [theirs, theirs, theirs]
            self.keyboard = source
        else:
            source, theirs = os.pipe()
            nothing = os.open(os.devnull, os.O_RDWR)
            streams = [nothing, theirs, nothing]
        self._source = source
        self._process: Forked | subprocess.Popen[bytes]
        if nursery is None:
            self._process = subprocess.Popen(
                [*COMMAND, *arguments],
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                env=environment(home),
                start_new_session=True,
            )
        else:
            self._process = nursery.begin(arguments, environment(home), streams)
        for stream in set(streams):
            os.close(stream)
        self._reader = threading.Thread(target=self._read, args=(source,), daemon=True)
        self._reader.start()

    @property
    def said(self) -> bytes:
        """All it wrote on its output so far."""
        with self._guard:
            return bytes(self._said)

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    @property
    def status(self) -> int | None:
        return self._process.poll()

    def type(self, text: str) -> None:
        """As a person does, key by key."""
        for letter in text:
            with contextlib.suppress(OSError):
                os.write(self.keyboard, letter.encode())
            time.sleep(0.004)

    def wait_for(self, what: bytes, timeout_s: float, *, after: int = 0) -> bool:
        """Until it has written this; whether it did in time."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            over = not self.lives
            if what in drawn(self.said[after:]):
                return True
            if over:
                return False
            time.sleep(0.05)
        return False

    def wait(self, timeout_s: float) -> bool:
        """Until it ends by itself; whether it did in time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._reader.join(5)
        return True

    def strike(self) -> None:
        """SIGKILL to all of it, without waiting for anything; `kill` cleans up after it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self, *, all_of_it: bool) -> None:
        """SIGKILL: to it alone, or to its children at the same moment too. Children that it leaves are waited for, as
        they end by themselves, and killed where they do not."""
        children: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            children = psutil.Process(self._process.pid).children(recursive=True)
        with contextlib.suppress(ProcessLookupError):
            if all_of_it:
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        _, left = psutil.wait_procs(children, timeout=20)
        for child in left:
            with contextlib.suppress(psutil.Error):
                child.kill()
        self._reader.join(5)
        if self._source >= 0:
            with contextlib.suppress(OSError):
                os.close(self._source)
            self._source = self.keyboard = -1

    def _read(self, source: int) -> None:
        while True:
            try:
                piece = os.read(source, 65536)
            except OSError:  # A terminal whose program has ended, or what was closed here.
                return
            if not piece:
                return
            with self._guard:
                self._said += piece


def _size(terminal: int) -> None:
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
