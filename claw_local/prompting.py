"""Who asks the person for a passphrase: nobody, until a program in a terminal says how. It must never know what for."""

from __future__ import annotations

from collections.abc import Callable

Ask = Callable[[str], str | None]
"""Puts a question to the person; None: there is nobody, or they say nothing."""

_ask: list[Ask] = []


def ask_with(ask: Ask | None) -> None:
    """From now on, this is how; None: nobody is asked."""
    _ask[:] = [] if ask is None else [ask]


def asked(question: str) -> str | None:
    """What the person says; None: there is nobody, or they say nothing."""
    return _ask[0](question) if _ask else None
