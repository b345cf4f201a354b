"""What a person sees on standard error while they wait: a bar, or what is being done. Nothing where no terminal is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(*, quiet: bool, words: str = "beginning") -> Iterator[Callable[[str, float], None]]:
    """A progress bar, which the function it gives moves: (what is being done, the share done). None is shown when
    `quiet`, or where no terminal is."""
    if quiet or not sys.stderr.isatty():
        yield lambda words, fraction: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(words, total=1.0)
        yield lambda words, fraction: bars.update(task, completed=fraction, description=words)


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
    from rich.console import Console

    with Console(stderr=True).status("asking Ollama") as status:
        yield status.update
