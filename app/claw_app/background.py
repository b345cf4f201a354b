"""Calls that block, run where they cannot freeze the screen. It must never know what is called.

Threads are daemons: leaving the app never waits for a model that is loading.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """Runs blocking functions in threads and hands their results to the event loop.

    Quick calls (the database) share one thread and keep their order; each slow one (loading, learning) has its own.
    """

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._closed = False
        threading.Thread(target=self._work, daemon=True, name="app-quick").start()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()

    def close(self) -> None:
        """Nothing more will come, or next to nothing: what was called before is still done. Waits for nothing."""
        self._closed = True
        self._calls.put(None)

    def quick(self, function: Callable[..., T], *args: Any, **options: Any) -> asyncio.Future[T]:
        """Run after the quick calls before it. Await the result."""
        if self._closed:
            return self.slow(function, *args, **options)
        call, future = _bind(function, args, options)
        self._calls.put(call)
        return future

    def slow(self, function: Callable[..., T], *args: Any, **options: Any) -> asyncio.Future[T]:
        """Run at once in a thread of its own. Await the result."""
        call, future = _bind(function, args, options)
        threading.Thread(target=call, daemon=True, name="app-slow").start()
        return future


def _bind(
    function: Callable[..., T], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Callable[[], None], asyncio.Future[T]]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def call() -> None:
        result, failure = None, None
        try:
            result = function(*args, **options)
        except BaseException as error:
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:  # the loop is closed: the person has left
            pass

    return call, future
