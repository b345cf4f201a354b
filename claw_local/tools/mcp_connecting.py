"""One connection to an MCP server, as its process or at an address. What it writes is bounded: a server that does not
speak MCP is left, and nothing that the `mcp` package says of it reaches the screen. It must never know of tools.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from .base import ToolError
from .mcp_settings import McpServer, filled_in
from .starting import HAS_WARDEN, guarded

if TYPE_CHECKING:
    from mcp import Client

START_S = 20.0
"""Longest that a server may take to start and to list its tools."""
MOST_BAD = 20
"""Messages of one server that are none, after which it is left."""
_LOGGERS = ("mcp", "client")
"""The package's: they write whole tracebacks for each line of a server's that is no message."""


class Muttered:
    """The end of what a server says on its error output. It does not reach the screen, and may be all there is of why
    it fell silent."""

    def __init__(self) -> None:
        self._end = b""

    def forget(self) -> None:
        """What it said until now."""
        self._end = b""

    @property
    def last(self) -> str:
        """Its last line that says something; "" if there is none."""
        lines = self._end.decode("utf-8", "replace").splitlines()
        words = (" ".join("".join(c for c in line if c.isprintable()).split()) for line in reversed(lines))
        return next((one[:200] for one in words if any(map(str.isalnum, one))), "")

    @contextmanager
    def taken(self) -> Iterator[TextIO]:
        """What to give a process as its error output. It is read until the last one that holds it has ended."""
        reads, writes = os.pipe()

        def read() -> None:
            with os.fdopen(reads, "rb", buffering=0) as pipe:
                while said := pipe.read(4096):
                    self._end = (self._end + said)[-4096:]

        threading.Thread(target=read, daemon=True, name="mcp-errors").start()
        with os.fdopen(writes, "w", encoding="utf-8") as errors:
            yield errors


@asynccontextmanager
async def connected(
    server: McpServer, workspace: Path, lost: Callable[[], None], muttered: Muttered
) -> AsyncIterator[Client]:
    """A client for a server, whose process starts, or whose address is called, when this is entered.

    Args:
        muttered: takes what it says on its error output.
        lost: called once the server has gone, or is left because it does not speak MCP.

    Raises:
        ToolError: there is no such program, or it does not speak MCP. Any error of the package's.
    """
    from mcp import Client

    _quiet()
    bad: list[str] = []
    try:
        if server.command:
            with muttered.taken() as errors:
                async with Client(_heard(_local(server, workspace, errors), bad, lost)) as client:
                    yield client
        else:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            timeout = httpx2.Timeout(server.timeout_s, connect=min(START_S, server.timeout_s))
            async with (
                httpx2.AsyncClient(headers=filled_in(server.headers), timeout=timeout, trust_env=False) as web,
                Client(_heard(streamable_http_client(server.url, http_client=web), bad, lost)) as client,
            ):
                yield client
    except Exception as error:
        if len(bad) > MOST_BAD:
            raise ToolError(f"it does not speak MCP: {len(bad)} of its lines are no messages") from error
        raise


def _quiet() -> None:
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
            logger.propagate = False


def _local(server: McpServer, workspace: Path, errors: Any) -> Any:
    from mcp import StdioServerParameters, stdio_client

    words, folder = [server.command, *server.args], Path(server.cwd or workspace)
    if HAS_WARDEN:
        # It ends the server and all that this started, whichever way we end. What it would tell goes nowhere: so
        # whether there is such a program is looked up before.
        command = str(folder / server.command) if os.sep in server.command else server.command
        if shutil.which(command) is None:
            raise ToolError(f"there is no program {server.command}")
        words = guarded(words, told=2)
    return stdio_client(
        StdioServerParameters(command=words[0], args=words[1:], env=filled_in(server.env), cwd=folder), errlog=errors
    )


@asynccontextmanager
async def _heard(transport: Any, bad: list[str], lost: Callable[[], None]) -> AsyncIterator[Any]:
    """The same transport, until it brings too much that is no message: then it has ended."""
    import anyio

    async with transport as (read, write):
        inner, messages = anyio.create_memory_object_stream[Any](0)

        async def hear() -> None:
            try:
                async with inner:
                    async for message in read:
                        if isinstance(message, Exception):
                            bad.append(type(message).__name__)
                            if len(bad) > MOST_BAD:
                                return
                        else:
                            await inner.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # The client has gone before.
            finally:
                lost()

        async with anyio.create_task_group() as group:
            group.start_soon(hear)
            try:
                yield messages, write
            finally:
                group.cancel_scope.cancel()
