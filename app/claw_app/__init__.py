"""The chat in the terminal. It must never know how a reply is made or learned from: it only speaks to `Assistant`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from claw_local.settings import Settings

__all__ = ["run"]


def run(
    home: str | os.PathLike[str] | None = None,
    *,
    model: str | Path | None = None,
    settings: Settings | None = None,
    chat_id: int | None = None,
    workspace: str = "",
    debug: bool = False,
) -> int:
    """Open the chat in this terminal and stay until the person leaves. Returns the exit status.

    Args:
        home, model, settings: as in `Assistant.open`.
        chat_id: the chat to open first; None opens a new one.
        workspace: the folder that its tools may touch; empty changes nothing.
        debug: let unexpected errors through with their traceback instead of saying them in a sentence.

    Raises:
        UsageError: this is not a terminal.
        ClawError: the assistant could not be opened, or that chat does not exist.
    """
    from .launch import launch

    return launch(home, model=model, settings=settings, chat_id=chat_id, workspace=workspace, debug=debug)
