"""Keeps watch: looks again and again whether it may learn by itself, in a thread of the open app, or once for a timer.

It must never cost anything that is felt: it looks every 20 seconds, does nothing heavy, and never imports torch.
"""

from __future__ import annotations

import contextlib
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from ..errors import ClawError
from .clock import Clock
from .conditions import Condition, unmet
from .probes import Probes
from .scheduler import Job, Scheduler, State
from .surroundings import Surroundings

if TYPE_CHECKING:
    from ..assistant import Assistant

POLL_S = 20.0
"""Between two looks at everything."""
GLANCE_S = 0.25
"""Between two looks, while a run goes on, at whether the person has come back in one of our programs."""
DESKTOP_EVERY = 3
"""Glances between two questions to the desktop."""
LEAVE_S = 5.0
"""Longest wait for a run to leave; it takes 3 seconds at most, unless something is badly wrong."""


class Keeper:
    """Watches over one assistant.

    Args:
        clock, probes: what to ask instead of this machine.
        poll_s: seconds between two looks at everything.
    """

    def __init__(
        self,
        assistant: Assistant,
        *,
        clock: Clock | None = None,
        probes: Probes | None = None,
        poll_s: float = POLL_S,
    ) -> None:
        self._world = Surroundings(assistant, clock=clock, probes=probes)
        self._scheduler = Scheduler(self._world)
        self._poll_s = poll_s
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._tell = threading.Event()
        self._free = threading.Event()
        self._free.set()
        self._thread: threading.Thread | None = None
        self.trouble: BaseException | None = None
        """What went wrong at the last look, if something did."""

    @property
    def state(self) -> State:
        return self._scheduler.state

    @property
    def last_job(self) -> Job | None:
        """The run that was begun here last and is over."""
        return self._world.last_job

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """As found at the last look."""
        return self._scheduler.conditions

    def begin(self) -> None:
        """Watch in a thread from now on; not once it was closed, which may come first where an app ends at once."""
        if self._thread is None and not self._stop.is_set():
            thread = threading.Thread(target=self._watch, daemon=True, name="idle-keeper")
            thread.start()
            self._thread = thread  # Only now: one that has not begun cannot be waited for.

    def touch(self) -> None:
        """The person is here: a key was pressed. Costs next to nothing; a run of ours leaves at once, and a model that
        made room for one begins to come back."""
        if self._world.presence.touch():
            self._tell.set()
            self._wake.set()
        elif self._scheduler.state != "waiting":
            self._wake.set()
        self._world.come_back()

    def make_room(self, timeout_s: float = LEAVE_S) -> bool:
        """Let a run that began by itself, here or in another program, leave, and wait for it; whether it has left."""
        end = time.monotonic() + timeout_s
        self._world.touch()
        self._wake.set()
        self._free.wait(timeout_s)
        while self._world.run_by_itself():
            if time.monotonic() > end:
                return False
            time.sleep(GLANCE_S)
        return True

    def close(self, timeout_s: float = LEAVE_S) -> None:
        """Stop watching; a run of ours leaves first."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def once(self, stop: threading.Event | None = None) -> tuple[Condition, ...]:
        """Look once; if all holds, run until the run is over or has left.

        Args:
            stop: set to let the run leave.

        Returns:
            What it waits for; nothing if there was a run.

        Raises:
            ClawError: the store cannot be read.
        """
        self._stop = stop or self._stop
        if self._scheduler.tick() == "waiting":
            return unmet(self.conditions)
        self._follow()
        return ()

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                self._note()
                if self._scheduler.tick() != "waiting":
                    self._follow()
                self.trouble = None
            except Exception as error:  # A busy or full disk passes; the next look shows it.
                self.trouble = error
            self._rest()

    def _rest(self) -> None:
        """Until the next look; only what the others must know is written meanwhile."""
        end = time.monotonic() + self._poll_s
        while not self._stop.is_set() and (left := end - time.monotonic()) > 0:
            self._wait(left)
            with contextlib.suppress(ClawError):
                self._note()

    def _follow(self) -> None:
        """Stay with a run until it is over."""
        self._free.clear()
        looked, glances = time.monotonic(), 0
        while self._scheduler.state != "waiting":
            self._wait(GLANCE_S)
            if self._stop.is_set():
                self._scheduler.leave()
            try:
                self._note()
                glances += 1
                whole = glances % DESKTOP_EVERY == 0
                self._scheduler.glance(partial(self._world.here, desktop=whole))
                if time.monotonic() - looked >= self._poll_s:
                    looked = time.monotonic()
                    self._scheduler.tick(begin=False)
            except Exception as error:
                # Nobody can tell any more whether the person is there.
                self.trouble = error
                self._scheduler.leave()
        self._free.set()

    def _note(self) -> None:
        if self._tell.is_set():
            self._tell.clear()
            self._world.tell()

    def _wait(self, seconds: float) -> None:
        self._wake.wait(seconds)
        self._wake.clear()
