"""HTTP/1.1 as uvicorn speaks it, and one thing more: who begins a request has to end its head in time.

Else a few slow clients could hold every connection there may be. It must never know what is asked.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 20.0
"""Longest that a request's line and headers may take to come, from the connection's or their own first byte on, in
seconds. Between two requests uvicorn waits less than that."""
_LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Punctual(H11Protocol):
    """One connection, whose client has to be punctual."""

    _by: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._wait_no_more()
        elif self._by is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._by = self.loop.call_later(HEAD_S, self._late)

    def _wait_no_more(self) -> None:
        if self._by is not None:
            self._by.cancel()
            self._by = None

    def _late(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(_LATE)
            self.transport.close()
