"""A reply's text on the screen, also while it grows. It must never know where the text comes from."""

from __future__ import annotations

import time
from dataclasses import dataclass

from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from ..markdown import Document

FRAME_S = 1 / 30
"""A person sees no difference above this rate."""
_REST = 2.0
"""For each second spent on drawing, so many are left to keys and everything else."""


class ReplyText(Widget):
    """Markdown as one widget. Text that comes faster than it can be drawn is drawn with what comes next."""

    @dataclass
    class LinkClicked(Message):
        """The person clicked a link."""

        href: str

    @dataclass
    class CodeClicked(Message):
        """The person clicked the word above a block of code that copies it."""

        number: int

    def __init__(self, text: str = "") -> None:
        super().__init__(classes="body")
        self._document = Document(text)
        self._page: tuple[int, list[Content]] | None = None
        self._pending = ""
        self._due = 0.0
        self._timer: Timer | None = None

    @property
    def source(self) -> str:
        """All of the text, drawn or not yet."""
        return self._document.source + self._pending

    @property
    def codes(self) -> list[str]:
        """The text of each block of code, in order."""
        self.flush()
        return self._document.codes

    def feed(self, text: str) -> None:
        """Add text that has come; it is drawn soon."""
        self._pending += text
        if self._timer is None:
            self._timer = self.set_timer(max(0.001, self._due - time.perf_counter()), self.flush)

    def flush(self) -> None:
        """Draw what has come."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if not self._pending:
            return
        started = time.perf_counter()
        text, self._pending = self._pending, ""
        self._document.append(text)
        self._page = None
        self.refresh(layout=True)
        self._lines(self.content_size.width)
        took = time.perf_counter() - started
        self._due = time.perf_counter() + max(FRAME_S - took, took * _REST)

    def _lines(self, width: int) -> list[Content]:
        if self._page is None or self._page[0] != width:
            self._page = (width, self._document.lines(width) if width else [])
        return self._page[1]

    def render(self) -> Content:
        """The lines for the width there is."""
        return Content("\n").join(self._lines(self.content_size.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are lines."""
        return len(self._lines(width))

    def action_open_link(self, href: str) -> None:
        """A link was clicked."""
        self.post_message(self.LinkClicked(href))

    def action_copy_code(self, number: int) -> None:
        """The word above a block of code was clicked."""
        self.post_message(self.CodeClicked(number))
