"""Importing as a person sees it: a bar, and Ctrl-C that stops it in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..language import _, ngettext
from .waiting import bar

if TYPE_CHECKING:
    from ..history import History, ImportReport, Progress


def importing(history: History, file: Path, *, learn: bool, quiet: bool) -> ImportReport:
    """Import a file under a progress bar. The first Ctrl-C stops it after the chats being written, a second at once."""
    with _stoppable() as cancel, bar(quiet=quiet, words=_("reading")) as show:

        def on_progress(progress: Progress) -> None:
            show(ngettext("{number} chat", "{number} chats", progress.chats), progress.fraction)

        return history.import_file(file, learn=learn, on_progress=on_progress, cancel=cancel)


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
