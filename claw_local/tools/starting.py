"""Starting a command, and ending it with all that it started, as far as each system lets. It must never know who asks.

On Linux a small program of ours stands between (`warden`). Elsewhere a command is ended with its group and with the
processes below it then; one whose parent has ended, and that left the group, goes on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from .base import ToolError

GRACE_S = 1.0
"""How long a command may tidy up when it is stopped, and its children may hold on to its output."""
HARD_S = 10.0
"""Longest that ending all of it may take."""
HAS_WARDEN = sys.platform == "linux"
WARDEN = Path(__file__).with_name("warden.py")


def started(
    command: list[str] | str, shell: bool, folder: Path, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start it in a folder, without a keyboard; its output comes through a pipe. Raises ToolError: it cannot be run."""
    options: dict[str, Any] = {
        "cwd": folder,
        "env": environment,
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
    }
    try:
        if HAS_WARDEN:
            return _guarded(command, shell, options)
        if sys.platform == "win32":
            options["creationflags"] = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        else:
            options["start_new_session"] = True
        return subprocess.Popen(command, shell=shell, **options)
    except (OSError, ValueError) as error:
        name = command.split()[0] if isinstance(command, str) else command[0]
        raise ToolError(f"{name} cannot be run: {getattr(error, 'strerror', None) or error}.") from error


def _guarded(command: list[str] | str, shell: bool, options: dict[str, Any]) -> subprocess.Popen[bytes]:
    words = ["/bin/sh", "-c", str(command)] if shell else list(command)
    reads, writes = os.pipe()
    try:
        process = subprocess.Popen(guarded(words, writes), pass_fds=(writes,), start_new_session=True, **options)
    except BaseException:
        os.close(reads)
        raise
    finally:
        os.close(writes)
    with os.fdopen(reads, "rb") as told:
        said = told.read()
    if said:
        process.communicate()
        raise OSError(int(said), os.strerror(int(said)))
    return process


def guarded(words: list[str], told: int) -> list[str]:
    """The command that runs a command under the warden. `told`: the descriptor it tells by, see there. Linux only."""
    # Python alone, with nothing of the folder's; the build without Python is started by the module's name.
    frozen = getattr(sys, "frozen", False)
    how = ["-I", "-m", f"{__package__}.{WARDEN.stem}"] if frozen else ["-I", "-S", str(WARDEN)]
    return [sys.executable, *how, str(told), *words]


def end(process: subprocess.Popen[bytes]) -> None:
    """End a command and all that it started: politely if it still runs, then for good."""
    if sys.platform == "win32":
        if process.poll() is None:
            subprocess.run(["taskkill", "/T", "/F", "/PID", str(process.pid)], capture_output=True, check=False)
        process.wait()
        return
    below = [] if HAS_WARDEN else _below(process)
    if process.poll() is None:
        if HAS_WARDEN:
            process.terminate()  # It sees to the rest, and ends when nothing of it is left.
        else:
            _signal(process.pid, signal.SIGTERM)
        try:
            process.wait(HARD_S if HAS_WARDEN else GRACE_S)
        except subprocess.TimeoutExpired:
            pass
    _signal(process.pid, signal.SIGKILL)
    for other in below:
        try:
            other.kill()
        except psutil.Error:
            pass  # It ended by itself.
    process.wait()


def _below(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    try:
        found: list[psutil.Process] = psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return []
    return found


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # None of it is left.
