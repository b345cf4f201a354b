"""Progress bars on standard error for what takes a while, and Ctrl-C that stops it in order."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..history import History, ImportReport, Progress


def importing(history: History, file: Path, *, learn: bool, quiet: bool) -> ImportReport:
    """Import a file under a progress bar. The first Ctrl-C stops it after the chats being written, a second at once."""
    with _stoppable() as cancel:
        if quiet or not sys.stderr.isatty():
            return history.import_file(file, learn=learn, cancel=cancel)
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
        with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task("reading", total=1.0)

            def show(progress: Progress) -> None:
                bars.update(task, completed=progress.fraction, description=f"{progress.chats:,} chats")

            return history.import_file(file, learn=learn, on_progress=show, cancel=cancel)


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    cancel = threading.Event()

    def stop(_number: int, _frame: Any) -> None:
        if cancel.is_set():
            raise KeyboardInterrupt
        cancel.set()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield cancel
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def bar(*, quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """A progress bar on standard error, which the function it gives moves: (what is being done, the share done). None
    is shown when `quiet`, or where no terminal is."""
    if quiet or not sys.stderr.isatty():
        yield lambda words, fraction: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("beginning", total=1.0)

        def show(words: str, fraction: float) -> None:
            bars.update(task, completed=fraction, description=words)

        yield show
