"""Runs one command on Linux, and ends all that it started when it ends: also what left its group or its session.

A program of its own, between the command and who asked for it: as the subreaper (prctl(2), PR_SET_CHILD_SUBREAPER) it
becomes the parent of every process below it whose own parent has ended, so that none gets out of sight. What it cannot
reach: what another service started for the command (systemd-run, at, docker), what runs as another user (sudo), and
what is left of a command that ended this program first. Only the standard library is imported here.

    python -I -S warden.py FD WORD...

FD is closed once the command runs; if it cannot be run, the number of the error is written there.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from types import FrameType

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE_S = 1.0
"""How long a command may tidy up when it is asked to end."""
HARD_S = 5.0
"""How long processes are looked for that begin new ones faster than they can be ended."""


def main(told: int, command: list[str]) -> int:
    """Run it. Returns its exit status; of a command that a signal ended, this program ends by the same."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    asked: list[int] = []

    def ask(number: int, _: FrameType | None) -> None:
        asked.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ask)
    try:
        process = subprocess.Popen(command, restore_signals=True)
    except OSError as error:
        os.write(told, str(error.errno or 0).encode())
        return 127
    except ValueError:
        os.write(told, b"22")
        return 127
    os.close(told)
    if os.getppid() == 1:  # Whoever asked ended before its death could be told.
        asked.append(signal.SIGTERM)
    status = _wait(process.pid, asked)
    _end_all()
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        deadly = os.WTERMSIG(status)
        if deadly != signal.SIGKILL:
            signal.signal(deadly, signal.SIG_DFL)
        os.kill(os.getpid(), deadly)
    return os.waitstatus_to_exitcode(status)


def _wait(pid: int, asked: list[int]) -> int:
    """The status of the command, which has a moment to end by itself once that is asked for."""
    until = 0.0
    while True:
        found, status = os.waitpid(-1, os.WNOHANG)
        if found == pid:
            return status
        if asked and not until:
            until = time.monotonic() + GRACE_S
            _tell_all(signal.SIGTERM)
        if until and time.monotonic() > until:
            _tell_all(signal.SIGKILL)
        if not found:
            time.sleep(0.01)


def _end_all() -> None:
    until = time.monotonic() + HARD_S
    while time.monotonic() < until:
        _tell_all(signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return  # None is left.
        time.sleep(0.005)


def _tell_all(number: int) -> None:
    """Send a signal to every process below this one."""
    parents = _parents()
    below = {os.getpid()}
    found = True
    while found:
        found = False
        for pid, parent in parents.items():
            if parent in below and pid not in below:
                below.add(pid)
                found = True
    for pid in below - {os.getpid()}:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def _parents() -> dict[int, int]:
    """The parent of each process there is."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # PID (NAME) STATE PARENT ..., and a name may hold anything, brackets too.
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                pass
    return parents


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
