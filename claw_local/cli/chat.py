"""`claw-local chat`: opens the app."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Optional

import typer

from ..errors import UsageError


def chat(
    chat_id: Optional[int] = typer.Option(None, "--chat", help="Open this chat."),
    model: Optional[Path] = typer.Option(None, "--model", help="A GGUF file to use instead of the one in the settings."),
) -> None:
    """Open the app."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError('`claw-local chat` needs a terminal. In scripts and pipes use: claw-local ask "…"')
    from claw_app import run

    run(model=model, chat_id=chat_id)
