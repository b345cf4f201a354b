"""MCP servers through the official `mcp` package: started when a chat with a workspace first needs them, ended with it.

Each server has a task of its own on one thread's event loop. What they say is bounded and never trusted: each call of
theirs asks the person, unless the person's own file says otherwise.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import re
import threading
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from .. import extras
from ..engine.tool_forms import ToolSpec
from ..language import _
from .base import Call, Prepared, Result, ToolError, ToolStopped
from .mcp_connecting import START_S, Muttered, connected
from .mcp_settings import McpServer
from .starting import HAS_WARDEN

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")
_OPEN: WeakSet[McpServers] = WeakSet()
CLOSE_S = 3.0 if HAS_WARDEN else 6.0
"""How long is waited for servers to end. The warden ends what is left then; where there is none, they need longer."""
MOST_TOOLS = 48
LONGEST_DESCRIPTION = 600
LONGEST_SCHEMA = 8000
_SILENT = -32001
"""The package's error for a request that was not answered in time."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


@atexit.register
def _end_open() -> None:
    """Whoever leaves without a word leaves no server behind."""
    for servers in list(_OPEN):
        servers.close()


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
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._started: set[str] = set()
        self._muttered = {name: Muttered() for name in servers}

    def open(self) -> McpServers:
        """Start all servers at once, and wait until each is there or has failed. Never raises for a server."""
        if not self._servers:
            return self
        try:
            import mcp  # noqa: F401
        except ImportError:
            self.problems.append(
                _(
                    "MCP servers need the package `mcp`, which is not installed. Install it ({command}), or rename "
                    "mcp.json.",
                    command=extras.to_type("mcp"),
                )
            )
            return self
        _OPEN.add(self)
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
        timeout_s, began = self._servers[server].timeout_s, time.monotonic()
        if self._loop is None:
            raise ToolError(f"The MCP server {server} was ended with its chat. Start the chat again.")
        try:
            client = self._clients.get(server) or self._wait(self._again(server), START_S + 1.0, stop)
            self._muttered[server].forget()
            began = time.monotonic()
            said = self._wait(client.call_tool(tool, arguments, read_timeout_seconds=timeout_s), timeout_s + 1.0, stop)
        except ToolError:
            raise
        except Exception as error:  # A server can fail in every way a program can.
            late = time.monotonic() - began > timeout_s - 0.1  # A tool may fail with that very code, and at once.
            silent = isinstance(error, FutureTimeout) or (late and getattr(error, "code", None) == _SILENT)
            why = f"did not answer within {timeout_s:g} s" if silent else f"failed: {_reason(error)}"
            raise ToolError(f"The MCP server {server} {why}.{self._said_last(server)}") from error
        text = _text(said)
        return Result(text, -1 if said.is_error else None)

    def _said_last(self, server: str) -> str:
        last = self._muttered[server].last.rstrip(".")
        return f" It said last: {last}." if last else ""

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
                        raise ToolStopped("The call was stopped.") from None
                    raise

    async def _start_all(self) -> dict[str, list[ToolSpec]]:
        self._closing = asyncio.Event()
        ready = {name: self._begin(name) for name in self._servers}
        found = {}
        await asyncio.wait(ready.values(), timeout=START_S)
        for name, future in ready.items():
            if not future.done():
                self.problems.append(f"The MCP server {name} did not start within {START_S:g} s. See mcp.json.")
                self._tasks[name].cancel()
            elif future.cancelled():
                self.problems.append(f"The MCP server {name} ended while it started. See mcp.json.")
            elif (error := future.exception()) is not None:
                last = self._said_last(name)
                self.problems.append(f"The MCP server {name} could not be used: {_reason(error)}.{last} See mcp.json.")
            else:
                found[name] = future.result()
        return found

    def _begin(self, name: str) -> asyncio.Future[list[ToolSpec]]:
        """Start a server; what is returned holds its tools once it is there."""
        ready: asyncio.Future[list[ToolSpec]] = asyncio.get_running_loop().create_future()
        ready.add_done_callback(lambda done: done.cancelled() or done.exception())  # It may be that nobody asks.
        self._tasks[name] = asyncio.create_task(self._live(name, ready))
        return ready

    async def _again(self, name: str) -> Client:
        """Start a server that has ended once more. Raises ToolError."""
        if name not in self._clients:
            ready = self._begin(name)
            done, _ = await asyncio.wait([ready], timeout=START_S)
            if not done:
                self._tasks[name].cancel()
            if name not in self._clients:
                error = ready.exception() if done and not ready.cancelled() else None
                why = f" ({_reason(error)})" if error is not None else ""
                raise ToolError(f"The MCP server {name} had ended, and did not start again{why}. See mcp.json.")
        return self._clients[name]

    async def _live(self, name: str, ready: asyncio.Future[list[ToolSpec]]) -> None:
        """One server, from its start to its end. It is entered and left by the same task, as the package wants."""
        assert self._closing is not None
        ended = asyncio.Event()
        try:
            async with connected(self._servers[name], self._workspace, ended.set, self._muttered[name]) as client:
                specs = await self._listed(name, client)
                self._clients[name] = client
                if not ready.done():
                    ready.set_result(specs)
                waits = [asyncio.create_task(event.wait()) for event in (self._closing, ended)]
                try:
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    self._clients.pop(name, None)  # Before it is ended, which may take a moment.
                    for wait in waits:
                        wait.cancel()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
        finally:
            if not ready.done():
                ready.cancel()

    async def _listed(self, server: str, client: Client) -> list[ToolSpec]:
        found: list[ToolSpec] = []
        cursor: str | None = None
        for __ in range(10):
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                schema = json.dumps(tool.input_schema)
                if not _NAME.match(tool.name) or len(schema) > LONGEST_SCHEMA:
                    self.problems.append(
                        f"A tool of the MCP server {server} is left out: its name or form is too much."
                    )
                    continue
                name = f"{server}__{tool.name}"
                if self._places.get(name) == (server, tool.name) and server in self._started:
                    continue  # It was started again.
                if name in self._places:  # Else what was allowed or trusted of one would be done by another.
                    self.problems.append(f"The MCP server {server} has a second {name}, which is left out.")
                    continue
                about = " ".join((tool.description or tool.title or "").split())
                self._places[name] = (server, tool.name)
                found.append(ToolSpec(name, about[:LONGEST_DESCRIPTION], schema))
            cursor = page.next_cursor
            if not cursor or len(found) > MOST_TOOLS:
                break
        self._started.add(server)
        return found

    async def _end_all(self) -> None:
        if self._closing is not None:
            self._closing.set()
        tasks = [task for task in self._tasks.values() if not task.done()]
        for name, task in self._tasks.items():
            if name not in self._clients:
                task.cancel()  # It has not started yet, and may never.
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=CLOSE_S - 1.0)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=0.5)


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
