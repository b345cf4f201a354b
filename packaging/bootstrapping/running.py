"""Runs one command, shows how far it is, and keeps all of its output in the log. Knows nothing of what it runs."""

from __future__ import annotations

import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .progress import LiveLine, PipProgress, describe

TAIL_LINES = 400
REFRESH_S = 0.2
STOP_S = 10.0


@dataclass(frozen=True)
class Finished:
    """How a command ended: exit status (negative: the signal that killed it), last lines of output, seconds it took."""

    returncode: int
    tail: str
    seconds: float


def run_logged(
    command: Sequence[str],
    *,
    stage: str,
    log: Path,
    line: LiveLine,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float | None = None,
) -> Finished:
    """Run a command to its end. Its output goes to the end of `log`; `line` shows the stage while it works.

    Whatever interrupts this (Ctrl-C, too) stops the command as well, and goes on upwards. A command that is still
    running after `timeout_s` is killed.
    """
    started = time.monotonic()
    progress = PipProgress()
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    with (
        log.open("a", encoding="utf-8") as file,
        subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as child,
    ):
        assert child.stdout is not None
        file.write(f"\n$ {subprocess.list2cmdline(command)}\n")
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=_pump, args=(child.stdout, lines), daemon=True).start()
        try:
            while True:
                elapsed = time.monotonic() - started
                line.show(describe(stage, elapsed, progress))
                if timeout_s is not None and elapsed > timeout_s:
                    child.kill()
                try:
                    text = lines.get(timeout=REFRESH_S)
                except queue.Empty:
                    continue
                while text is not None:
                    file.write(text)
                    tail.append(text)
                    progress.feed(text)
                    if lines.empty():
                        break
                    text = lines.get()
                if text is None:
                    break
        except BaseException:
            _stop(child)
            raise
        returncode = child.wait()
    return Finished(returncode, "".join(tail), time.monotonic() - started)


def _pump(stream: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    for text in stream:
        lines.put(text)
    lines.put(None)


def _stop(child: subprocess.Popen[str]) -> None:
    """Ask it to end; after a while, insist."""
    child.terminate()
    try:
        child.wait(STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
