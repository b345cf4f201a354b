"""A learning run that begins by itself, in a thread beside whoever keeps watch. It must never decide when."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..errors import ClawError
from .job import LearnResult

if TYPE_CHECKING:
    from ..assistant import Assistant


JUDGED_S = 0.5
"""Between two looks whether the person is back, while the judge still reads what they said."""


class LearningJob:
    """Learns from what is waiting, or goes on with the run that was left, until it is done or has to leave.

    Attributes:
        result: how it ended; None if it did not come to its end.
        error: what went wrong, if something did.
    """

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant
        self._leaving = threading.Event()
        self.result: LearnResult | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._learn, daemon=True, name="idle-run")
        self._thread.start()

    def leave(self) -> None:
        """Ask it to stop computing at once."""
        self._leaving.set()

    def over(self) -> bool:
        """Whether it has ended, and its process is gone."""
        return not self._thread.is_alive()

    def wait(self, timeout_s: float) -> bool:
        """Wait until it is over; whether that came about in time."""
        self._thread.join(timeout_s)
        return self.over()

    def _learn(self) -> None:
        try:
            learn = self._assistant.learn
            while not self._assistant.wait_judged(JUDGED_S):
                if self._leaving.is_set():
                    return
            if self._leaving.is_set():
                return
            self.result = learn.follow(learn.start("idle"), leave=self._leaving)
        except ClawError as error:
            self.error = error
        except Exception as error:  # Nobody is there to see a traceback; what it was is kept for `learn status`.
            self.error = error
