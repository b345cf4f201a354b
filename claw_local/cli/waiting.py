"""What a person sees on standard error while they wait: a bar, or what is being done. Nothing where no terminal is.

Who wishes for plain text gets lines instead, which no screen reader has to read again and again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..language import _
from .plainly import wished

LEAST_BETWEEN_S = 3.0
"""Least time between two lines of the same thing."""
EACH = 0.1
"""How much further it must be for another line."""


class Lines:
    """Takes a progress bar's place: a line when something else is being done, or when it is a tenth further."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._words, self._total, self._done = "", 1.0, 0.0
        self._said_words, self._said_share, self._said_at = "", 0.0, -LEAST_BETWEEN_S

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add_task(self, description: str, *, total: float | None = None) -> int:
        self._words, self._total = description, total or 0.0
        self._say()
        return 0

    def update(
        self,
        _task: int,
        *,
        completed: float | None = None,
        total: float | None = None,
        description: str | None = None,
    ) -> None:
        """As rich's own: what is not given stays."""
        self._done = self._done if completed is None else completed
        self._total = self._total if total is None else total
        self._words = self._words if description is None else description
        self._say()

    def _say(self) -> None:
        share = min(self._done / self._total, 1.0) if self._total else 0.0
        other = self._words != self._said_words
        if not other and round(share - self._said_share, 6) < EACH:
            return
        now = self._clock()
        # A new thing is said at once, unless things change so fast that nobody could follow.
        if now < self._said_at + LEAST_BETWEEN_S and self._said_words:
            return
        self._said_words, self._said_share, self._said_at = self._words, share, now
        told = f"{self._words}, {share:.0%}" if share else self._words
        print(told, file=sys.stderr, flush=True)


def bars(*columns: Any) -> AbstractContextManager[Any]:
    """rich's progress bar with these columns on standard error; lines for those who wish for plain text."""
    if wished():
        return Lines()
    from rich.console import Console
    from rich.progress import Progress

    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def bar(*, quiet: bool, words: str = "") -> Iterator[Callable[[str, float], None]]:
    """A progress bar, which the function it gives moves: (what is being done, the share done). None is shown when
    `quiet`, or where no terminal is."""
    if quiet or not sys.stderr.isatty():
        yield lambda words, fraction: None
        return
    from rich.progress import BarColumn, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with bars(*columns) as shown:
        task = shown.add_task(words or _("beginning"), total=1.0)
        yield lambda words, fraction: shown.update(task, completed=fraction, description=words)


@contextmanager
def fractions(words: str, *, quiet: bool) -> Iterator[Callable[[float, str], None]]:
    """The same, of one thing whose parts are told behind its name."""
    with bar(quiet=quiet, words=words) as show:
        yield lambda fraction, detail: show(f"{words}: {detail}", fraction)


@contextmanager
def steps(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done, where nobody knows how much is left."""
    if quiet or not sys.stderr.isatty():
        yield lambda words: None
        return
    if wished():
        yield lambda words: print(words, file=sys.stderr, flush=True)
        return
    from rich.console import Console

    with Console(stderr=True).status(_("asking Ollama")) as status:
        yield status.update
