"""`claw-local chat`: opens the app."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from ..errors import UsageError


def chat(
    ctx: typer.Context,
    chat_id: int | None = typer.Option(None, "--chat", help="Open this chat."),
    model: Path | None = typer.Option(None, "--model", help="A GGUF file to use instead of the one in the settings."),
) -> None:
    """Open the app."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError('`claw-local chat` needs a terminal. In scripts and pipes use: claw-local ask "…"')
    from claw_app import run

    debug = bool(ctx.find_root().params.get("debug"))
    raise typer.Exit(run(model=model, chat_id=chat_id, debug=debug))
