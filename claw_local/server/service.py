"""`Service` over one assistant: places are shared out, work is done in threads, and failures become words.

It must never know about HTTP, nor how an answer is made.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TypeVar

from .. import heap
from ..errors import ClawError, ModelError, NotFoundError, UsageError
from ..talking import asked as core
from .asking import Answering, Asked, Caller, Embedded, Ended, Offered, Piece
from .errors import TOO_DEEP, Internal, Invalid, Missing, ServeError, TimedOut, TooLong, Unavailable
from .places import Place, Places

if TYPE_CHECKING:
    from ..assistant import Assistant

Result = TypeVar("Result")

TIME_S = 900.0
"""Longest that one answer may take from its first moment in a place, in seconds."""
WAIT_S = 300.0
"""Longest that a request may wait for a place."""
QUIET_S = 1.0
"""After so long without an answer being written, memory that is free goes back to the system."""
LITTLE = 4
"""Threads for questions that need no place, such as which models there are."""

_log = logging.getLogger(__name__)


class Serve:
    """Implements `Service`. For one event loop.

    Args:
        places: how many answers are asked for at the same time, of the engine that writes them.
        each: most of them for one client; None: all.
        time_s: longest that one may take.
    """

    def __init__(
        self, assistant: Assistant, *, places: int = 1, each: int | None = None, time_s: float = TIME_S
    ) -> None:
        self.assistant = assistant
        self._serving = assistant.serving
        self._places = Places(places, each=each)
        self._time_s = time_s
        self._writers = ThreadPoolExecutor(places, thread_name_prefix="claw-answer")
        self._little = ThreadPoolExecutor(LITTLE, thread_name_prefix="claw-ask")
        self._running: set[threading.Event] = set()
        self._quiet: asyncio.TimerHandle | None = None

    async def answer(self, asked: Asked) -> Answering:
        """See `Service.answer`."""
        loop = asyncio.get_running_loop()
        place = await self._place(asked.caller)
        cancel = threading.Event()
        parts: asyncio.Queue[Piece | Ended | BaseException] = asyncio.Queue()

        def put(part: Piece | Ended | BaseException) -> None:
            try:
                loop.call_soon_threadsafe(parts.put_nowait, part)
            except RuntimeError:  # The server is gone.
                cancel.set()

        def work() -> None:
            try:
                for part in self._serving.answer(asked, cancel):
                    put(part)
            except BaseException as error:
                put(error)

        self._work(place, cancel, work)
        deadline = loop.time() + self._time_s
        try:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        part = await parts.get()
                except TimeoutError:
                    raise TimedOut(f"The answer took longer than {self._time_s:.0f} s. Ask for less.") from None
                if isinstance(part, BaseException):
                    raise in_words(part) from part
                yield part
                if isinstance(part, Ended):
                    return
        finally:
            cancel.set()

    async def models(self) -> Sequence[Offered]:
        return await self._do(self._serving.models)

    async def count(self, asked: Asked) -> int:
        return await self._do(lambda: self._serving.count(asked))

    async def detokenize(self, token_ids: Sequence[int]) -> str:
        return await self._do(lambda: self._serving.detokenize(token_ids))

    async def embed(self, caller: Caller, model: str, texts: Sequence[str | Sequence[int]]) -> Embedded:
        place = await self._place(caller)
        cancel = threading.Event()
        embedding = self._work(place, cancel, lambda: self._serving.embed(model, texts, cancel))
        try:
            async with asyncio.timeout(self._time_s):
                return await asyncio.shield(embedding)
        except TimeoutError:
            raise TimedOut(f"The texts took longer than {self._time_s:.0f} s. Send fewer at a time.") from None
        except Exception as error:
            raise in_words(error) from error
        finally:
            cancel.set()

    async def feedback(
        self,
        caller: Caller,
        message_id: int,
        verdict: Literal["good", "bad", "none"] | None,
        *,
        hint: str | None,
        edit: str | None,
    ) -> int | None:
        """See `Serving.feedback`; "none" takes back what was said, and goes alone. Returns the score, None for none.
        Raises Invalid."""
        if verdict == "none":
            if hint is not None or edit is not None:
                raise Invalid("none takes back what was said, so it goes without hint and edit.")
            await self._do(lambda: self._serving.take_back(caller, message_id))
            return None
        signal = await self._do(lambda: self._serving.feedback(caller, message_id, verdict, hint=hint, edit=edit))
        return signal.score

    async def close(self) -> None:
        """Stop what is being written; it ends within a token."""
        for cancel in list(self._running):
            cancel.set()
        self._writers.shutdown(wait=False, cancel_futures=True)
        self._little.shutdown(wait=False, cancel_futures=True)

    async def _place(self, caller: Caller) -> Place:
        try:
            async with asyncio.timeout(WAIT_S):
                return await self._places.take(_client(caller))
        except TimeoutError:
            raise TimedOut("No place came free in time. Try again later.") from None

    def _work(self, place: Place, cancel: threading.Event, work: Callable[[], Result]) -> asyncio.Future[Result]:
        """Begin to work in a place. It is free once nothing computes there any more, not when nobody waits any more."""
        self._running.add(cancel)

        loop = asyncio.get_running_loop()

        def done(_: object) -> None:
            self._running.discard(cancel)
            place.free()
            if not self._running:
                self._quiet = loop.call_later(QUIET_S, self._give_back)

        if self._quiet is not None:
            self._quiet.cancel()
        try:
            working = loop.run_in_executor(self._writers, work)
        except RuntimeError as error:
            done(None)
            raise Unavailable("The server is closing.") from error
        working.add_done_callback(done)
        return working

    def _give_back(self) -> None:
        with suppress(RuntimeError):  # The server is closing.
            self._little.submit(heap.give_back)

    async def _do(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._little, work)
        except Exception as error:
            raise in_words(error) from error


def in_words(error: BaseException) -> ServeError:
    """What a program is told of a failure: nothing of this machine is in it. The whole goes to the server's own log."""
    if isinstance(error, ServeError):
        return error
    if isinstance(error, core.TooLong):
        return TooLong(str(error), field=error.field)
    if isinstance(error, core.CannotAnswer):
        return Invalid(str(error), field=error.field)
    if isinstance(error, RecursionError):  # All that recurses here does so along what was sent.
        return Invalid(TOO_DEEP)
    if isinstance(error, NotFoundError):
        return Missing(str(error))
    if isinstance(error, UsageError):
        return Invalid(str(error))
    if isinstance(error, ModelError):
        _log.error("%s", error)
        return Unavailable("The model cannot be loaded. The server's own log says why.")
    if isinstance(error, ClawError):
        _log.error("%s", error)
        return Internal("The answer failed here. The server's own log says why.")
    _log.error("An answer failed.", exc_info=error)
    return Internal("Something unexpected went wrong here. The server's own log says what.")


def _client(caller: Caller) -> str:
    return f"{caller.key}:{caller.address}"
