"""One question to a judge with an end to it: it takes no longer than this, and whoever asks can stop it before.

It must never know what is asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..engine.base import Cancelled, ChatEngine, has_tokens
from ..errors import JudgeError
from ..language import _


class Deadline(threading.Event):
    """An event that is also set once a time has passed, or another event is set. Engines look at it between steps.

    Args:
        excused: whether something else is being waited for; the time then begins anew.
    """

    def __init__(
        self, timeout_s: float, outer: threading.Event | None = None, excused: Callable[[], bool] = lambda: False
    ) -> None:
        super().__init__()
        self._timeout_s = timeout_s
        self._until = time.monotonic() + timeout_s
        self._outer = outer
        self._excused = excused

    @property
    def was_stopped(self) -> bool:
        """Whether someone stopped it, rather than the time."""
        return self._outer is not None and self._outer.is_set()

    def is_set(self) -> bool:
        if super().is_set() or self.was_stopped:
            return True
        if time.monotonic() >= self._until and self._excused():
            self._until = time.monotonic() + self._timeout_s
        return time.monotonic() >= self._until


@contextmanager
def within(timeout_s: float, cancel: threading.Event | None, engine: ChatEngine) -> Iterator[Deadline]:
    """Give the deadline inside to the engine as its `cancel`. While a model in this process writes a reply, which the
    judge waits for, no time passes.

    Raises:
        Cancelled: `cancel` was set. JudgeError: the time was over before it was done.
    """
    deadline = Deadline(timeout_s, cancel, lambda: has_tokens(engine) and engine.replying)
    try:
        yield deadline
    except Cancelled:
        if deadline.was_stopped:
            raise
        raise too_slow(engine.info.name, timeout_s) from None


def too_slow(who: str, timeout_s: float) -> JudgeError:
    return JudgeError(
        _(
            "The judge {who} took longer than {timeout_s:g} s, so the turn waits. judge.timeout_s gives it more time.",
            who=who,
            timeout_s=timeout_s,
        )
    )
