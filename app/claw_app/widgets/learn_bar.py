"""The progress of a training run: one that was started here, or one that another program began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import ProgressBar, Static

from claw_local.language import N_, _

from ..text import one_line

if TYPE_CHECKING:
    from claw_local.idle.job import Progress
    from claw_local.store import Run

STOPS = N_("F5 stops")
ELSEWHERE = N_("begun elsewhere")
BY_ITSELF = N_("leaves at a key")
PHASES = (
    *(N_("starting"), N_("loading"), N_("exam"), N_("judging"), N_("practising"), N_("training"), N_("gate")),
    *(N_("fetching"), N_("checking")),
)
"""What a run, or the fetching of a model, may be at. The store has them in English; `_()` says them otherwise."""


class LearnBar(Horizontal):
    """Hidden unless a run is on."""

    own = False
    """Whether the run that is shown was started here."""

    def compose(self) -> ComposeResult:
        yield Static(_("Learning"), id="phase")
        yield ProgressBar(total=1.0, show_eta=False, id="progress")
        yield Static(_(STOPS), id="learn-stop")

    def on_mount(self) -> None:
        self.display = False

    def begin(self) -> None:
        """Show an empty bar for a run started here."""
        self.own = True
        self._show(_("Learning: starting"), 0.0, STOPS)

    def advance(self, progress: Progress) -> None:
        """Show how far it is, and at what."""
        self._show(_words(progress.phase, progress.detail, progress.seconds_left), progress.fraction, STOPS)

    def end(self) -> None:
        """The run started here is over."""
        self.own = self.display = False

    def watch_run(self, run: Run | None) -> None:
        """Show a run that began by itself or in another program, as long as it goes on."""
        if self.own:
            return
        if run is not None and run.state == "running":
            note = BY_ITSELF if run.started_by == "idle" else ELSEWHERE
            self._show(_words(run.phase, run.detail, run.seconds_left), run.progress, note)
        else:
            self.display = False

    def _show(self, words: str, share: float, note: str) -> None:
        self.query_one("#phase", Static).update(Content(words))
        self.query_one(ProgressBar).update(total=1.0, progress=share)
        self.query_one("#learn-stop", Static).update(_(note))
        self.display = True


def _words(phase: str, detail: str, seconds_left: float | None) -> str:
    words = f"{_(phase)}: {_(detail)}" if detail else _(phase)
    if seconds_left is not None:
        words += (
            " · " + _("{minutes:.0f} min left", minutes=seconds_left / 60)
            if seconds_left >= 90
            else " · " + _("about a minute left")
        )
    return one_line(words)
