"""The line below the chat: which model and adapter answer, whether they learn, and how a training run is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from ..text import count, one_line

if TYPE_CHECKING:
    from claw_local.idle.learning import LearnStatus


class StatusLine(Static):
    """Redraws itself when what it shows changes."""

    model: reactive[str] = reactive("starting …")
    trouble: reactive[bool] = reactive(False)
    state: reactive[LearnStatus | None] = reactive(None)

    def __init__(self) -> None:
        super().__init__(id="status")

    def render(self) -> Content:
        """The line, most important first: a narrow terminal cuts off the end."""
        parts = [Content.styled(one_line(self.model), "bold $error" if self.trouble else "bold $foreground")]
        state = self.state
        if state is not None:
            run = state.run
            if run is not None and run.state == "running":
                parts.append(Content.styled(f"{one_line(run.phase)} {run.progress:.0%}", "$accent"))
            if state.enabled:
                parts.append(Content.styled("learning on", "$success"))
            else:
                parts.append(Content.styled("learning off", "$quiet"))
            lessons = f"{count(state.lessons, 'lesson')} waiting" if state.lessons else "no lessons"
            parts.append(Content.styled(lessons, "$accent" if state.lessons else "$quiet"))
            if state.hints:
                parts.append(Content.styled(count(len(state.hints), "hint"), "$quiet"))
            parts.append(Content.styled(f"adapter {state.adapter}" if state.adapter else "base model", "$quiet"))
        return Content.styled(" · ", "$quiet").join(parts)
