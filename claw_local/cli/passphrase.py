"""Asking for the passphrase of an encrypted store, where there is a terminal. It must never keep what was said."""

from __future__ import annotations

import getpass
import os
import sys


def ask(question: str) -> str | None:
    """What the person types, unseen; None: there is no terminal, or they typed nothing."""
    if not _terminal():
        return None
    try:
        return getpass.getpass(question, stream=sys.stderr) or None
    except EOFError:
        return None


def _terminal() -> bool:
    """Whether somebody is there; what comes in through a pipe is no answer."""
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    if sys.stdin.isatty() or os.name == "nt":
        return sys.stdin.isatty()
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
