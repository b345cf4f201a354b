"""The judge at work while the person chats: reads turns from a queue, writes signals and hints to the store.

It must never make anyone wait: it is started only after the next reply has begun, and the engine lets replies go first.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ..engine.base import Cancelled, Engine
from ..errors import ClawError
from ..memory.fast import remember
from ..signals.turns import Turn
from ..store import Signal, Store
from ..store.records import HintScope

if TYPE_CHECKING:
    from .judge import Judge

Listener = Callable[[Signal], None]


def judge_turn(store: Store, judge: Judge, turn: Turn, cancel: threading.Event | None = None) -> Signal | None:
    """Judge one turn and keep what comes of it. None: it has no next state.

    Raises:
        Cancelled: `cancel` was set; the turn stays waiting.
    """
    if turn.next_state is None:
        return None
    verdict = judge.judge(
        turn.question, turn.reply.content, turn.next_state.content, next_role=turn.next_state.role, cancel=cancel
    )
    with store.database.write():
        signal = store.signals.add(
            turn.reply.id,
            "judge",
            verdict.score,
            hint=verdict.hint,
            probabilities=verdict.probabilities,
            judge_version=verdict.version,
        )
        if verdict.hint and not store.hints.of_message(turn.reply.id):
            scope: HintScope = "everywhere" if verdict.scope == "everywhere" else "turn"
            hint = store.hints.add(verdict.hint, message_id=turn.reply.id, chat_id=turn.reply.chat_id, scope=scope)
            remember(store, hint)
    return signal


class BackgroundJudge:
    """A thread that judges turns one after the other. A turn it could not judge stays waiting for the next time.

    Args:
        engine: the engine to judge one turn with, held open for so long. It may be another one the next time.
    """

    def __init__(self, store: Store, engine: Callable[[], AbstractContextManager[Engine]]) -> None:
        self._store = store
        self._engine = engine
        self._judges_on: Engine | None = None
        self._judge: Judge | None = None
        self._queue: queue.Queue[Turn | None] = queue.Queue()
        self._idle = threading.Event()
        self._idle.set()
        self._pending = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._listeners: list[Listener] = []
        self._thread: threading.Thread | None = None
        self.last_error: str = ""

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def put(self, turn: Turn) -> None:
        with self._lock:
            self._pending += 1
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="claw-judge", daemon=True)
                self._thread.start()
        self._queue.put(turn)

    def wait(self, timeout_s: float | None) -> bool:
        """Whether nothing is left to judge, within that time."""
        return self._idle.wait(timeout_s)

    def close(self) -> None:
        """Stop; what is not judged yet stays waiting in the store."""
        self._stop.set()
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout=5.0)

    def _work(self) -> None:
        while (turn := self._queue.get()) is not None and not self._stop.is_set():
            try:
                self._judge_one(turn)
            except Cancelled:
                pass
            except ClawError as error:
                self.last_error = str(error)
            except Exception as error:  # A judge that fails must never take the chat with it.
                self.last_error = f"The judge failed: {error!r}. The turn waits to be judged later."
            finally:
                with self._lock:
                    self._pending -= 1
                    if self._pending == 0:
                        self._idle.set()

    def _judge_one(self, turn: Turn) -> None:
        with self._engine() as engine:
            if self._judge is None or self._judges_on is not engine:
                from .judge import Judge

                self._judge, self._judges_on = Judge(engine), engine
            signal = judge_turn(self._store, self._judge, turn, cancel=self._stop)
        if signal is not None:
            for listener in self._listeners:
                listener(signal)
