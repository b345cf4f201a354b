"""The judge at work while the person chats: reads turns from a queue, writes signals and hints to the store.

It must never make anyone wait: it is started only after the next reply has begun, and the engine lets replies go first.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..engine.base import Cancelled, ChatEngine
from ..errors import ClawError
from ..memory.fast import remember
from ..signals.turns import Turn, pair_some
from ..store import Signal, Store
from ..store.records import HintScope
from . import changes

if TYPE_CHECKING:
    from .verdict import AnyJudge

Listener = Callable[[Signal], None]

RETRY_S = 30.0
LONGEST_RETRY_S = 3600.0
MOST_TRIES = 12
"""So often a turn is tried in one session; after that it waits for the next, or for a learning run."""
MOST_FAILURES = 3
"""Failures in a row after which a learning run asks the judge no more."""


def judge_turn(store: Store, judge: AnyJudge, turn: Turn, cancel: threading.Event | None = None) -> Signal | None:
    """Judge one turn and keep what comes of it. None: it has no next state, or the reply is not there any more.

    Raises:
        Cancelled: `cancel` was set; the turn stays waiting.
        JudgeError, EngineError, ModelError: the judge failed; nothing is kept, and the turn stays waiting.
    """
    if turn.next_state is None:
        return None
    verdict = judge.judge(
        turn.question,
        turn.reply.content,
        turn.next_state.content,
        next_role=turn.next_state.role,
        cancel=cancel,
        working=turn.working,
    )
    with store.database.write():
        # A backup may have put another reply under that number meanwhile.
        if [one.created_at for one in store.messages.some([turn.reply.id])] != [turn.reply.created_at]:
            return None
        signal = store.signals.add(
            turn.reply.id,
            "judge",
            verdict.score,
            hint=verdict.hint,
            probabilities=verdict.probabilities,
            judge_version=verdict.version,
            votes=verdict.votes,
        )
        if verdict.hint and not store.hints.of_message(turn.reply.id):
            scope: HintScope = "everywhere" if verdict.scope == "everywhere" else "turn"
            hint = store.hints.add(verdict.hint, message_id=turn.reply.id, chat_id=turn.reply.chat_id, scope=scope)
            remember(store, hint)
    return signal


def judge_waiting(
    store: Store, judge: AnyJudge, waiting: Sequence[Turn], on_turn: Callable[[int], None] = lambda number: None
) -> str:
    """Judge turns one after the other; those that the judge fails at stay waiting.

    Args:
        on_turn: called before each turn with its number, from 1.

    Returns:
        What the last failure said; "" if there was none.
    """
    said, failures = "", 0
    for number, turn in enumerate(waiting, start=1):
        on_turn(number)
        try:
            judge_turn(store, judge, turn)
            failures = 0
        except ClawError as error:
            said, failures = str(error), failures + 1
            if failures >= MOST_FAILURES:
                break
    return said


@dataclass(frozen=True)
class _Ahead:
    """A reply that has just ended: what the judge can read before the person answers."""

    question: str
    reply: str


@dataclass
class _Later:
    """A turn that the judge failed at: when it is tried again, and how often it was."""

    turn: Turn
    at: float
    tries: int


class BackgroundJudge:
    """A thread that judges turns one after the other. A turn it could not judge is tried again later, after a time that
    doubles; what is left when the program ends waits in the store.

    Args:
        engine: the engine to judge one turn with, held open for so long. It may be another one the next time.
        make: the judge on an engine.
        retry_s: how long a turn waits after its first failure, in seconds.
        may: whether what waits may be judged still.
    """

    def __init__(
        self,
        store: Store,
        engine: Callable[[], AbstractContextManager[ChatEngine]],
        make: Callable[[ChatEngine], AnyJudge],
        *,
        retry_s: float = RETRY_S,
        may: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._engine = engine
        self._make = make
        self._retry_s = retry_s
        self._may = may
        self._judges_on: tuple[ChatEngine, str] | None = None
        self._judge: AnyJudge | None = None
        self._queue: queue.Queue[Turn | _Ahead | None] = queue.Queue()
        self._later: dict[int, _Later] = {}
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
            self._start()
        self._queue.put(turn)

    def read_ahead(self, question: str, reply: str) -> None:
        """A reply has ended: when nothing is left to judge, read what of it is known. Nobody waits for this."""
        with self._lock:
            self._start()
        self._queue.put(_Ahead(question, reply))

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="claw-judge", daemon=True)
            self._thread.start()

    def wait(self, timeout_s: float | None) -> bool:
        """Whether nothing is left to judge, within that time. Turns that are to be tried again later do not count."""
        return self._idle.wait(timeout_s)

    def close(self) -> None:
        """Stop; what is not judged yet stays waiting in the store."""
        self._stop.set()
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout=5.0)

    def _work(self) -> None:
        while not self._stop.is_set():
            turn, queued = self._next()
            if turn is None:
                return
            if isinstance(turn, _Ahead):
                self._read_ahead(turn)
                continue
            try:
                if queued or self._still_waiting(turn):
                    self._judge_one(turn)
                self._later.pop(turn.reply.id, None)
            except Cancelled:
                pass
            except ClawError as error:
                self._failed(turn, str(error))
            except Exception as error:  # A judge that fails must never take the chat with it.
                self._failed(turn, f"The judge failed: {error!r}. The turn waits to be judged later.")
            finally:
                if queued:
                    with self._lock:
                        self._pending -= 1
                        if self._pending == 0:
                            self._idle.set()

    def _next(self) -> tuple[Turn | _Ahead | None, bool]:
        """The next turn, and whether it was queued; one whose time to be tried again has come, where none is."""
        due = min(self._later.values(), key=lambda later: later.at, default=None)
        try:
            return self._queue.get(timeout=max(0.0, due.at - time.monotonic()) if due else None), True
        except queue.Empty:
            assert due is not None
            return due.turn, False

    def _still_waiting(self, turn: Turn) -> bool:
        """Whether a turn that waited here may still be judged: not if it was judged elsewhere meanwhile, by a learning
        run or another program, its chat was deleted, or learning was switched off; then it waits in the store."""
        if not self._may():
            return False
        signals = self._store.signals.of([turn.reply.id])[turn.reply.id]
        return bool(pair_some(self._store, [turn.reply.id])) and all(signal.source != "judge" for signal in signals)

    def _failed(self, turn: Turn, words: str) -> None:
        self.last_error = words
        tries = self._later[turn.reply.id].tries + 1 if turn.reply.id in self._later else 1
        if tries >= MOST_TRIES:
            self._later.pop(turn.reply.id, None)
            return
        wait_s = min(self._retry_s * 2 ** (tries - 1), LONGEST_RETRY_S)
        self._later[turn.reply.id] = _Later(turn, time.monotonic() + wait_s, tries)

    def _read_ahead(self, ended: _Ahead) -> None:
        if not self._queue.empty():
            return
        with contextlib.suppress(Exception), self._engine() as engine:  # What fails is said when a turn is judged.
            self._judge_on(engine).read_ahead(ended.question, ended.reply, cancel=self._stop)

    def _judge_on(self, engine: ChatEngine) -> AnyJudge:
        known = (engine, changes.state(self._store))
        if self._judge is None or self._judges_on != known:
            self._judge, self._judges_on = self._make(engine), known
        return self._judge

    def _judge_one(self, turn: Turn) -> None:
        with self._engine() as engine:
            signal = judge_turn(self._store, self._judge_on(engine), turn, cancel=self._stop)
        if signal is not None:
            for listener in self._listeners:
                listener(signal)
