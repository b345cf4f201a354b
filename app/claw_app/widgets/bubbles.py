"""One message on the screen. It must never know where messages are kept or who wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from ..text import clean, excerpt, one_line

if TYPE_CHECKING:
    from textual.widgets import Markdown
    from textual.widgets.markdown import MarkdownStream

    from claw_local.store import Signal

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_BY_PERSON = ("thumb", "edit", "regenerate")


class Question(Static):
    """What the person said, as they typed it."""

    def __init__(self, text: str) -> None:
        super().__init__(Content(excerpt(clean(text))), classes="question")


class Notice(Static):
    """A sentence from the app about the chat: a notice or an error."""

    def __init__(self, text: str, *, error: bool = False) -> None:
        super().__init__(Content(clean(text)), classes="notice error" if error else "notice")


class Bubble(Vertical, can_focus=True):
    """A reply: Markdown, and a line below it with its mark. Focused, the line says more.

    Attributes:
        message_id: 0 until it is known.
        raw: the reply as text, cleaned.
    """

    @dataclass
    class LinkOpened(Message):
        """The person clicked a link in a reply."""

        href: str

    def __init__(self, text: str = "", *, message_id: int = 0, state: str = "done", detail: str = "") -> None:
        super().__init__(classes="reply")
        self.message_id = message_id
        self.raw = clean(text)
        self.state = state
        self.detail = detail
        self._signals: tuple[Signal, ...] = ()
        self._waiting_for = ""
        self._frame = 0
        self._ticker: Timer | None = None
        self._stream: MarkdownStream | None = None

    def compose(self) -> ComposeResult:
        # Imported here: its parser would take a tenth of the time to the first paint, which has no message in it.
        from textual.widgets import Markdown

        yield Markdown(self.raw, open_links=False, classes="body")
        yield Static(classes="foot")

    def on_mount(self) -> None:
        self._draw_foot()

    async def on_unmount(self) -> None:
        if self._stream is not None:
            await self._stream.stop()
            self._stream = None

    def watch_has_focus(self, focused: bool) -> None:
        """Say more, or less, below the reply."""
        super().watch_has_focus(focused)
        self._draw_foot()

    def show_end(self) -> None:
        """Scroll to the line below the reply."""
        self.query_one(".foot", Static).scroll_visible(animate=False)

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        event.stop()
        self.post_message(self.LinkOpened(event.href))

    def wait_for(self, what: str) -> None:
        """Show that nothing has come yet, and why."""
        if self._ticker is None:
            self._ticker = self.set_interval(0.1, self._tick)
        self._waiting_for = what
        self._draw_foot()

    def _tick(self) -> None:
        self._frame += 1
        self._draw_foot()

    def _stop_waiting(self) -> None:
        if self._ticker is not None:
            self._ticker.stop()
            self._ticker = None
        self._waiting_for = ""
        self._draw_foot()

    async def write(self, text: str) -> None:
        """Add text that has come."""
        if not text:
            return
        if self._ticker is not None:
            self._stop_waiting()
        if self._stream is None:
            body = cast("Markdown", self.query_one(".body"))
            self._stream = body.get_stream(body)
        self.raw += text
        await self._stream.write(text)

    async def finish(self, state: str, detail: str = "") -> None:
        """No more text comes."""
        if self._stream is not None:
            await self._stream.stop()
            self._stream = None
        self.state, self.detail = state, detail
        self._stop_waiting()

    def mark(self, signals: Sequence[Signal]) -> None:
        """Show what the reply was worth. What the person said themselves comes before what the judge thinks."""
        active = [signal for signal in signals if signal.state == "active"]
        active.sort(key=lambda signal: (signal.source in _BY_PERSON, signal.source == "tool", signal.id))
        self._signals = tuple(active)
        self._draw_foot()

    def add_mark(self, signal: Signal) -> None:
        """Show one more signal."""
        self.mark((*(old for old in self._signals if old.id != signal.id), signal))

    @property
    def score(self) -> int | None:
        """The mark that counts: 1, 0 or -1; None if the reply has not been judged."""
        return self._signals[-1].score if self._signals else None

    @property
    def hint(self) -> str:
        """The latest hint the person gave to this reply, on one line."""
        return next((one_line(signal.hint) for signal in reversed(self._signals) if signal.hint), "")

    def _draw_foot(self) -> None:
        if not self.query(".foot"):  # not composed yet: the mount draws it
            return
        parts: list[Content] = []
        if self._waiting_for:
            parts.append(Content.styled(_FRAMES[self._frame % len(_FRAMES)], "$primary"))
            parts.append(Content.styled(self._waiting_for, "$quiet"))
        score = self.score
        if score is not None:
            mark, style, word = {1: ("▲", "$success", "good"), -1: ("▼", "$error", "bad")}.get(
                score, ("·", "$quiet", "neither good nor bad")
            )
            parts.append(Content.styled(mark, f"bold {style}"))
            if self.has_focus:
                giver = {"judge": "judged by your next message", "edit": "edited by you"}.get(
                    self._signals[-1].source, "marked by you"
                )
                parts.append(Content.styled(f"{word}, {giver}", style))
        ended = {"interrupted": "stopped", "failed": "failed", "cut": "cut at the longest reply allowed"}.get(
            self.state
        )
        if self.state == "done" and not self.raw.strip():
            ended = "an empty reply"
        if ended:
            parts.append(Content.styled(ended, "$warning"))
        if self.has_focus and self.hint:
            parts.append(Content.styled(f"“{self.hint}”", "italic $accent"))
        lines = [Content("  ").join(parts)] if parts else []
        if self.has_focus and self.message_id:
            more = [Content.styled(self.detail, "$quiet")] if self.detail else []
            keys = "+ good  - bad  h hint  e edit  y copy"
            lines.append(Content("   ").join([Content.styled(keys, "$secondary"), *more]))
        foot = self.query_one(".foot", Static)
        foot.update(Content("\n").join(lines))
        foot.display = bool(lines)
