"""HTTP/1.1 as uvicorn speaks it, and one thing more: a client has to be punctual.

Who begins a request has to end its head in time, who was answered before their body had come (without a key, say) has
to end that, and who is sent something has to read it. Where there are too many, those make room for whom nothing is
done. Else a few slow clients could hold every connection there may be. It must never know what is asked.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 512
"""Beyond these the ones that have been waiting longest without a whole request are closed."""
HEAD_S = 20.0
"""Longest that a request's line and headers may take to come, from the connection's or their own first byte on, in
seconds. Between two requests uvicorn waits less than that."""
READ_S = 60.0
"""How long a client may take to read `LEAST_READ` of what waits to be sent to it, in seconds."""
LEAST_READ = 64 * 1024
"""Bytes. What a system holds on both sides of a connection comes before that: a few megabytes."""
_LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Punctual(H11Protocol):
    """One connection, whose client has to be punctual."""

    _by: asyncio.TimerHandle | None = None
    _reads_by: asyncio.TimerHandle | None = None
    _idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._make_room()
        # Whatever could not be sent at once counts as not read, also the little that is left when a connection ends.
        transport.set_write_buffer_limits(high=0)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        answered_early = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if self.conn.their_state is not h11.IDLE and not answered_early:
            self._wait_no_more()
        elif self._by is None:
            self._wait()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_whether_read(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._read_all()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        self._read_all()
        super().connection_lost(exc)

    @property
    def _idle(self) -> bool:
        """Whether nothing is being done for this client."""
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        here = [one for one in self.connections if isinstance(one, Punctual) and not one.transport.is_closing()]
        idle = [one for one in here if one._idle and one is not self]
        for one in sorted(idle, key=lambda one: one._idle_since)[: max(0, len(here) - MOST_CONNECTIONS)]:
            one.transport.close()

    def _wait(self) -> None:
        self._by = self.loop.call_later(HEAD_S, self._late)

    def _wait_no_more(self) -> None:
        if self._by is not None:
            self._by.cancel()
            self._by = None

    def _late(self) -> None:
        if not self.transport.is_closing():
            if self.conn.our_state is h11.IDLE:
                self.transport.write(_LATE)
            self.transport.close()

    def _look_whether_read(self, waiting: int) -> None:
        """Look later whether enough of so many bytes was read, and end the connection if it was not."""

        def look() -> None:
            left = self.transport.get_write_buffer_size()
            if waiting - left < LEAST_READ:
                self.transport.abort()
            else:
                self._look_whether_read(left)

        self._reads_by = self.loop.call_later(READ_S, look)

    def _read_all(self) -> None:
        if self._reads_by is not None:
            self._reads_by.cancel()
            self._reads_by = None
