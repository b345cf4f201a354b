"""A reply on its way from the assistant's thread to the screen. It must never know about widgets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from .text import Cleaner

if TYPE_CHECKING:
    from claw_local.assistant import Answer, Reply

    from .background import Background

BATCH_S = 1 / 30
"""How often the screen takes what has come: a person sees no difference above this rate, and the machine has work."""


class LiveReply:
    """One reply that is being written.

    Attributes:
        question: what the person sent.
        started: resolves to the Reply once the turn is stored and its ids are known; cancelled if it could not begin.
        text: what has been taken so far, cleaned.
    """

    def __init__(self, question: str, begin: Callable[[], Reply], background: Background) -> None:
        self.question = question
        self.text = ""
        self.chat_id: int | None = None
        self.started: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.stopping = False
        self._reply: Reply | None = None
        self._lock = threading.Lock()
        self._pieces: list[str] = []
        self._cleaner = Cleaner()
        self._ended = background.slow(self._run, begin, asyncio.get_running_loop())
        self._ended.add_done_callback(self._fail_unstarted)

    def _run(self, begin: Callable[[], Reply], loop: asyncio.AbstractEventLoop) -> None:
        reply = begin()
        with self._lock:
            self._reply = reply
        if self.stopping:
            reply.cancel()
        loop.call_soon_threadsafe(self._announce, reply)
        for piece in reply:
            with self._lock:
                self._pieces.append(piece)

    def _announce(self, reply: Reply) -> None:
        self.chat_id = reply.chat_id
        if not self.started.done():
            self.started.set_result(reply)

    def _fail_unstarted(self, ended: asyncio.Future[None]) -> None:
        error = None if ended.cancelled() else ended.exception()
        if error is not None and not self.started.done():
            self.started.cancel()

    @property
    def ended(self) -> bool:
        """Whether no more pieces come."""
        return self._ended.done()

    @property
    def error(self) -> BaseException | None:
        """Why it ended early, if it did."""
        return self._ended.exception() if self._ended.done() and not self._ended.cancelled() else None

    @property
    def reply(self) -> Reply | None:
        """The assistant's Reply, once it has begun."""
        return self._reply

    @property
    def answer(self) -> Answer | None:
        """What the reply was made of, once it has ended well."""
        return self._reply.answer if self._reply is not None and self.ended and self.error is None else None

    async def batch(self) -> str:
        """Wait a moment, then take what has come since. Never raises for what failed in the thread."""
        await asyncio.wait({self._ended}, timeout=BATCH_S)
        with self._lock:
            come = "".join(self._pieces)
            self._pieces.clear()
        fresh = self._cleaner.feed(come) + (self._cleaner.flush() if self.ended else "")
        self.text += fresh
        return fresh

    def cancel(self) -> None:
        """Stop it: at once if it has begun, else as soon as it begins."""
        self.stopping = True
        with self._lock:
            reply = self._reply
        if reply is not None:
            reply.cancel()
