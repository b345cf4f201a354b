"""Calling the system's own programs. It must never leave a person with their raw output."""

from __future__ import annotations

import shutil
import subprocess

from ...errors import LearnError
from ...language import _

TIMEOUT_S = 60.0


def call(*command: str) -> str:
    """What a program prints.

    Raises:
        LearnError: it is not there, took too long, or refused; the message has its first line.
    """
    program = shutil.which(command[0])
    if program is None:
        raise LearnError(
            _(
                "{command} is not on this machine, so its timer cannot be set up. The open app learns too.",
                command=command[0],
            )
        )
    try:
        done = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LearnError(
            _("{command} did not answer: {error}. Try again later.", command=command[0], error=error)
        ) from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise LearnError(
            _(
                "The command {command} failed: {reason}",
                command=" ".join(command[:3]),
                reason=lines[0].strip() if lines else done.returncode,
            )
        )
    return done.stdout


def accepts(*command: str) -> bool:
    """Whether a program ends well."""
    try:
        call(*command)
    except LearnError:
        return False
    return True
