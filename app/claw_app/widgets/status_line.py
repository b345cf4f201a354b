"""The line below the chat: which model and adapter answer, whether they learn, and how a training run is doing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from claw_local.language import N_, _, ngettext

from ..text import one_line

if TYPE_CHECKING:
    from claw_local.idle.learning import LearnStatus

_CELLS = 8
_SHORT_NAME = 14

Part = tuple[str, str]
"""Words, and the style they are shown in."""


class StatusLine(Static):
    """Redraws itself when what it shows changes. A narrow terminal gets shorter words, not a line that is cut off."""

    model: reactive[str] = reactive(N_("starting …"))
    trouble: reactive[bool] = reactive(False)
    state: reactive[LearnStatus | None] = reactive(None)
    silent: reactive[bool] = reactive(False)
    """Whether the open chat is one that nothing is learned from: incognito, or set so that it never teaches."""

    writing: reactive[bool] = reactive(False)
    """Whether a reply is being written, which Esc stops."""

    def __init__(self) -> None:
        super().__init__(id="status")

    def render(self) -> Content:
        """The line in the longest words that fit."""
        width = self.content_size.width or self.app.size.width
        parts: list[Part] = []
        for level in range(_LEVELS):
            parts = self._parts(level)
            if sum(cell_len(words) + 3 for words, _ in parts) - 3 <= width:
                break
        return Content.styled(" · ", "$quiet").join(Content.styled(words, style) for words, style in parts)

    def _parts(self, level: int) -> list[Part]:
        name = one_line(_(self.model))
        if level >= _NAME and len(name) > _SHORT_NAME:
            name = name[: _SHORT_NAME - 1] + "…"
        parts = [(name, "bold $error" if self.trouble else "bold $foreground")]
        if self.writing and level < _NAME:
            parts.append((_("Esc stops"), "$accent"))
        state = self.state
        if state is None:
            return parts
        run = state.run
        if run is not None and run.state == "running":
            phase = "" if level >= _RUN else f"{one_line(_(run.phase))} "
            parts.append((f"{phase}{bar(run.progress)} {run.progress:.0%}", "$accent"))
        parts.extend(self._teaching(state, level))
        parts.append((_("adapter {id}", id=state.adapter) if state.adapter else _("base model"), "$quiet"))
        if state.hints and level < _HINTS:
            parts.append((ngettext("{number} hint", "{number} hints", len(state.hints)), "$quiet"))
        return parts

    def _teaching(self, state: LearnStatus, level: int) -> Iterator[Part]:
        """Whether what is said here is learned from, and how much is still to be learned."""
        if self.silent:
            yield _("never teaches") if level >= _SWITCH else _("this chat does not teach"), "$quiet"
            return
        yield switch_words(state, short=level >= _SWITCH), "$success" if _learns(state) else "$quiet"
        if state.lessons:
            if level >= _LESSONS:
                waiting = ngettext("{number} waiting", "{number} waiting", state.lessons)
            else:
                waiting = ngettext("{number} lesson waiting", "{number} lessons waiting", state.lessons)
            yield waiting, "$accent"
        elif level < _NOTHING:
            yield _("no lessons waiting"), "$quiet"


def switch_words(state: LearnStatus, *, short: bool = False) -> str:
    """Whether it learns; paused: nothing is learned by itself."""
    if not state.enabled:
        return _("learn off") if short else _("learning off")
    if state.held:
        return _("learn paused") if short else _("learning paused")
    return _("learn on") if short else _("learning on")


def _learns(state: LearnStatus) -> bool:
    return state.enabled and not state.held


_NOTHING, _HINTS, _LESSONS, _RUN, _NAME, _SWITCH, _LEVELS = range(1, 8)
"""What is shortened, in this order, until the line fits."""


def bar(share: float, cells: int = _CELLS) -> str:
    """A share of 1 as a bar of characters."""
    full = round(max(0.0, min(1.0, share)) * cells)
    return "▰" * full + "▱" * (cells - full)
