"""The progress of a training run that was started here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import ProgressBar, Static

from ..text import one_line

if TYPE_CHECKING:
    from claw_local.idle.job import Progress


class LearnBar(Horizontal):
    """Hidden unless a run is on."""

    def compose(self) -> ComposeResult:
        yield Static("Learning", id="phase")
        yield ProgressBar(total=1.0, show_eta=False, id="progress")
        yield Static("F5 stops", id="learn-stop")

    def on_mount(self) -> None:
        self.display = False

    def begin(self) -> None:
        """Show an empty bar."""
        self.query_one("#phase", Static).update("Learning: starting")
        self.query_one(ProgressBar).update(total=1.0, progress=0.0)
        self.display = True

    def advance(self, progress: Progress) -> None:
        """Show how far it is, and at what."""
        words = one_line(f"{progress.phase}: {progress.detail}" if progress.detail else progress.phase)
        self.query_one("#phase", Static).update(Content(words))
        self.query_one(ProgressBar).update(progress=progress.fraction)

    def end(self) -> None:
        """Hide the bar."""
        self.display = False
