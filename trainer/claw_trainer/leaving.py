"""Ending a run within a second, whatever it is doing. What it needs to go on is on the disk already.

A thread waits for a signal, for a word in the store, and for the end of the process that started the run. It raises
`Left` in the main thread, but never inside an import, where other code would take it for its own error: there the wish
is noted, and looked at again in a moment. If the main thread is deep in a long computation, the process is ended.
"""

from __future__ import annotations

import _thread
import os
import select
import signal
import socket
import threading
import time
from types import FrameType

from claw_local.errors import ClawError
from claw_local.store import Store
from claw_local.store.processes import process_lives

LOOK_S = 0.1
PARENT_S = 1.0
"""Seconds between two looks at the store, and at the process that started the run."""
PATIENCE_S = 0.5
"""Seconds that the main thread is given to come out of what it computes."""
AGAIN_S = 0.02
"""Seconds between two looks at whether an import is done by which a wish to leave had to wait."""
LEFT = 4
"""Exit status of a run that was left, or stopped, without a word."""


class Left(BaseException):
    """The run was asked to leave, or to stop."""


class Leaving:
    """Watches while inside. `Left` is raised at most once."""

    def __init__(self, store: Store, run_id: int, starter: str) -> None:
        """Args:
        starter: identity of the process that started the run. Not asked of the system: if that process is gone by
            now, the parent is another one, which outlives the run.
        """
        self._store = store
        self._run_id = run_id
        self._parent = starter
        self._over = threading.Event()
        self._wished = False
        self._raised = False
        self._ours, self._theirs = socket.socketpair()
        self._thread = threading.Thread(target=self._watch, name="leaving", daemon=True)

    def __enter__(self) -> Leaving:
        self._theirs.setblocking(False)
        signal.set_wakeup_fd(self._theirs.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._raise)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """From here on nothing ends the process but itself."""
        self._over.set()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    @property
    def wished(self) -> bool:
        """Whether it was asked to leave, or to stop. Whatever came out of the run then is no failure."""
        return self._wished

    def _raise(self, _number: int, frame: FrameType | None) -> None:
        if self._raised or self._over.is_set():
            return
        self._wished = True
        if not _is_importing(frame):
            self._raised = True
            raise Left

    def _watch(self) -> None:
        look_at_parent = time.monotonic() + PARENT_S
        while not self._over.is_set():
            if select.select([self._ours], [], [], LOOK_S)[0]:
                self._ours.recv(64)
                break  # The main thread has the signal too, as soon as it runs Python again.
            asked = self._asked()
            if not asked and time.monotonic() > look_at_parent:
                look_at_parent = time.monotonic() + PARENT_S
                asked = not process_lives(self._parent)
            if asked and not self._over.is_set():
                _thread.interrupt_main(signal.SIGTERM)
                break
        else:
            return
        self._end()

    def _asked(self) -> bool:
        try:
            return bool(self._store.runs.get(self._run_id).asked)
        except ClawError:
            return False

    def _end(self) -> None:
        """End the process if the main thread does not come to its end in time."""
        end = time.monotonic() + PATIENCE_S
        try:
            if not self._asked():
                self._store.runs.ask(self._run_id, "leave")  # Who finds it dead knows that it did not fail.
        except ClawError:
            pass
        while not self._over.wait(AGAIN_S):
            if time.monotonic() > end:
                os._exit(LEFT)
            if self._wished and not self._raised:  # It came in the middle of an import.
                _thread.interrupt_main(signal.SIGTERM)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") in ("importlib._bootstrap", "_frozen_importlib"):
            return True
        frame = frame.f_back
    return False
