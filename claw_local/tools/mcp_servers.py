"""MCP servers through the official `mcp` package: started when a chat with a workspace first needs them, ended with it.

Each server has a task of its own on one thread's event loop. What they say is bounded and never trusted: each call of
theirs asks the person, unless the person's own file says otherwise.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..engine.tool_forms import ToolSpec
from .base import Call, Prepared, Result, ToolError
from .mcp_settings import McpServer, filled_in

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")
START_S = 20.0
"""Longest that a server may take to start and to list its tools."""
CLOSE_S = 3.0
MOST_TOOLS = 48
LONGEST_DESCRIPTION = 600
LONGEST_SCHEMA = 8000
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
MISSING = (
    "MCP servers need the package `mcp`, which is not installed. "
    'Install it (pip install "claw-local[mcp]"), or rename mcp.json.'
)


class McpServers:
    """The servers of mcp.json for one workspace. `open` starts them; use it from any thread after that.

    Attributes:
        specs: their tools; each name begins with the server's.
        problems: a sentence for each server that could not be used.
    """

    def __init__(self, servers: Mapping[str, McpServer], workspace: Path) -> None:
        self.specs: tuple[ToolSpec, ...] = ()
        self.problems: list[str] = []
        self._servers, self._workspace = servers, workspace
        self._places: dict[str, tuple[str, str]] = {}
        self._clients: dict[str, Client] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closing: asyncio.Event | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def open(self) -> McpServers:
        """Start all servers at once, and wait until each is there or has failed. Never raises for a server."""
        if not self._servers:
            return self
        try:
            import mcp  # noqa: F401
        except ImportError:
            self.problems.append(MISSING)
            return self
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="mcp")
        self._thread.start()
        found = self._wait(self._start_all(), START_S + CLOSE_S, None)
        specs = [spec for name in self._servers for spec in found.get(name, [])]
        if len(specs) > MOST_TOOLS:
            self.problems.append(f"The MCP servers have {len(specs)} tools; the first {MOST_TOOLS} are used.")
        self.specs = tuple(specs[:MOST_TOOLS])
        return self

    def close(self) -> None:
        """End the servers that were started here. Waits a moment for them."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self._loop = None
        done = asyncio.run_coroutine_threadsafe(self._end_all(), loop)
        try:
            done.result(CLOSE_S)
        except Exception:
            pass  # It had its time; its process ends with ours at the latest.
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_S)

    def prepare(self, call: Call) -> Prepared:
        """What the call would do. Raises ToolError."""
        if call.name not in self._places:
            raise ToolError(f"There is no tool {call.name} any more: it was switched off, or its server is not there.")
        server, tool = self._places[call.name]
        asks = tool not in self._servers[server].trusted
        told = _seen(json.dumps(call.arguments, indent=2, ensure_ascii=False))
        preview = f"{tool} of the MCP server {server}, with\n{told}"

        def perform(stop: threading.Event | None) -> Result:
            return self._call(server, tool, call.arguments, stop)

        return Prepared(call, f"{server}: {tool}", preview, asks, call.name, perform)

    def _call(self, server: str, tool: str, arguments: dict[str, Any], stop: threading.Event | None) -> Result:
        client = self._clients.get(server)
        if client is None:
            raise ToolError(f"The MCP server {server} is not there. Start the chat again, or see mcp.json.")
        timeout_s = self._servers[server].timeout_s
        try:
            said = self._wait(client.call_tool(tool, arguments, read_timeout_seconds=timeout_s), timeout_s + 1.0, stop)
        except ToolError:
            raise
        except FutureTimeout as error:
            raise ToolError(f"The MCP server {server} did not answer within {timeout_s:g} s.") from error
        except Exception as error:  # A server can fail in every way a program can.
            raise ToolError(f"The MCP server {server} failed: {_reason(error)}.") from error
        text = _text(said)
        return Result(text, -1 if said.is_error else None)

    def _wait(self, work: Coroutine[Any, Any, T], timeout_s: float, stop: threading.Event | None) -> T:
        assert self._loop is not None
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        waited = 0.0
        while True:
            try:
                return future.result(0.1)
            except FutureTimeout:
                if future.done():  # Its own error, or it came to its end just now.
                    return future.result()
                waited += 0.1
                stopped = stop is not None and stop.is_set()
                if stopped or waited >= timeout_s:
                    future.cancel()
                    if stopped:
                        raise ToolError("The call was stopped.") from None
                    raise

    async def _start_all(self) -> dict[str, list[ToolSpec]]:
        self._closing = asyncio.Event()
        ready: dict[str, asyncio.Future[list[ToolSpec]]] = {}
        for name, server in self._servers.items():
            ready[name] = asyncio.get_running_loop().create_future()
            self._tasks.append(asyncio.create_task(self._live(name, server, ready[name])))
        found = {}
        await asyncio.wait(ready.values(), timeout=START_S)
        for name, future in ready.items():
            if not future.done():
                self.problems.append(f"The MCP server {name} did not start within {START_S:g} s. See mcp.json.")
            elif future.cancelled():
                self.problems.append(f"The MCP server {name} ended while it started. See mcp.json.")
            elif (error := future.exception()) is not None:
                self.problems.append(f"The MCP server {name} could not be used: {_reason(error)}. See mcp.json.")
            else:
                found[name] = future.result()
        return found

    async def _live(self, name: str, server: McpServer, ready: asyncio.Future[list[ToolSpec]]) -> None:
        """One server, from its start to its end. It is entered and left by the same task, as the package wants."""
        assert self._closing is not None
        try:
            async with _connected(server, self._workspace) as client:
                specs = await self._listed(name, client)
                self._clients[name] = client
                if not ready.done():
                    ready.set_result(specs)
                await self._closing.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
        finally:
            self._clients.pop(name, None)
            if not ready.done():
                ready.cancel()

    async def _listed(self, server: str, client: Client) -> list[ToolSpec]:
        found: list[ToolSpec] = []
        cursor: str | None = None
        for _ in range(10):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                schema = json.dumps(tool.input_schema)
                if not _NAME.match(tool.name) or len(schema) > LONGEST_SCHEMA:
                    self.problems.append(
                        f"A tool of the MCP server {server} is left out: its name or form is too much."
                    )
                    continue
                name = f"{server}__{tool.name}"
                if name in self._places:  # Else what was allowed or trusted of one would be done by another.
                    self.problems.append(f"The MCP server {server} has a second {name}, which is left out.")
                    continue
                about = " ".join((tool.description or tool.title or "").split())
                self._places[name] = (server, tool.name)
                found.append(ToolSpec(name, about[:LONGEST_DESCRIPTION], schema))
            cursor = page.next_cursor
            if not cursor or len(found) > MOST_TOOLS:
                break
        return found

    async def _end_all(self) -> None:
        if self._closing is not None:
            self._closing.set()
        _, late = await asyncio.wait(self._tasks, timeout=CLOSE_S - 1.0)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=0.5)


def _connected(server: McpServer, workspace: Path) -> Any:
    """A client for a server, to be entered: its process starts, or its address is called, then."""
    from contextlib import asynccontextmanager

    from mcp import Client, StdioServerParameters, stdio_client

    @asynccontextmanager
    async def local() -> Any:
        parameters = StdioServerParameters(
            command=server.command, args=server.args, env=filled_in(server.env), cwd=server.cwd or workspace
        )
        # What it says on its error output must not reach the screen.
        with open(os.devnull, "w", encoding="utf-8") as nowhere:
            async with Client(stdio_client(parameters, errlog=nowhere)) as client:
                yield client

    @asynccontextmanager
    async def remote() -> Any:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        timeout = httpx2.Timeout(server.timeout_s, connect=min(START_S, server.timeout_s))
        async with (
            httpx2.AsyncClient(headers=filled_in(server.headers), timeout=timeout, trust_env=False) as web,
            Client(streamable_http_client(server.url, http_client=web)) as client,
        ):
            yield client

    return local() if server.command else remote()


def _text(said: Any) -> str:
    """What a server returned, as text."""
    parts = []
    for block in said.content:
        text = getattr(block, "text", None)
        resource = getattr(block, "resource", None)
        if text is None and resource is not None:
            text = getattr(resource, "text", None)
        parts.append(text if isinstance(text, str) else f"[{getattr(block, 'type', 'something')}, which is not shown]")
    if not parts and said.structured_content is not None:
        parts.append(json.dumps(said.structured_content, ensure_ascii=False))
    return "\n".join(parts) or "(nothing)"


def _seen(text: str) -> str:
    """JSON text in which nothing is hidden: what shows nothing, or turns the text around it, stands as an escape."""
    units = {letter: letter.encode("utf-16-be", "surrogatepass").hex() for letter in set(text)}
    return "".join(
        letter
        if letter.isprintable() or letter == "\n"
        else "".join(f"\\u{units[letter][at : at + 4]}" for at in range(0, len(units[letter]), 4))
        for letter in text
    )


def _reason(error: BaseException) -> str:
    """Why, in a few words: of several errors at once the first."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    said = " ".join(str(error).split()) or type(error).__name__
    return (said if len(said) <= 200 else said[:199] + "…").rstrip(".")
