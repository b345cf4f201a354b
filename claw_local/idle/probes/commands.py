"""Asking a program of the system something. It must never wait long, nor show a window."""

from __future__ import annotations

import shutil
import subprocess

from ...language import _

TIMEOUT_S = 4.0


class NoAnswer(Exception):
    """The program is not there, failed, or took too long; the message says which."""


class NotThere(NoAnswer):
    """There is no such program."""


def ask(program: str, *arguments: str, timeout_s: float = TIMEOUT_S) -> str:
    """What a program prints. Raises NoAnswer, and NotThere among these."""
    found = shutil.which(program)
    if found is None:
        raise NotThere(_("{program} is not there", program=program))
    try:
        done = subprocess.run(
            [found, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except subprocess.TimeoutExpired as error:
        raise NoAnswer(_("{program} did not answer", program=program)) from error
    except OSError as error:
        raise NoAnswer(_("{program} could not be started", program=program)) from error
    if done.returncode:
        raise NoAnswer(_("{program} failed", program=program))
    return done.stdout
