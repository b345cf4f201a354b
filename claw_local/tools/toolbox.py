"""All tools of one chat: the workspace's own and those of MCP servers. It must never know who calls."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

from ..engine.tool_forms import ToolSpec
from ..errors import SettingsError, UsageError
from ..language import _
from ..paths import Paths
from ..settings import ToolsSettings
from .base import Call, Prepared, Result, Tool, ToolError, ToolStopped, Undo, cut_middle
from .folder import Folder
from .looking import Looking
from .mcp_servers import McpServers
from .mcp_settings import read_servers
from .running import Running
from .writing import Writing

OWN = (*Looking.specs, *Writing.specs, *Running.specs)
"""The workspace's own tools, as models are told of them."""


def workspace_of(folder: str | os.PathLike[str], paths: Paths) -> Path:
    """A folder as a workspace, by its whole and real path.

    Raises:
        UsageError: there is no such folder, or too much would be in it.
    """
    if not os.fspath(folder).strip():  # An empty variable of a script's means no folder, least of all this one.
        raise UsageError(_("Name the folder that is to be the workspace."))
    try:
        root = Path(os.path.realpath(Path(folder).expanduser()))
        there = root.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(_("{folder} cannot be used as a workspace: {error}.", folder=folder, error=error)) from error
    if not there:
        raise UsageError(
            _("There is no folder {folder}. Make it first, or name another one as the workspace.", folder=folder)
        )
    if root == Path(root.anchor):
        raise UsageError(_("The whole disk cannot be the workspace. Name a folder for this work."))
    for own in (paths.data, paths.config):
        own = Path(os.path.realpath(own))
        if own == root or own in root.parents or root in own.parents:
            raise UsageError(
                _(
                    "{root} holds claw-local's own files ({own}), so it cannot be the "
                    "workspace. Name a folder below it.",
                    root=root,
                    own=own,
                )
                if root in own.parents
                else _("{root} is one of claw-local's own folders. Name another one as the workspace.", root=root)
            )
    return root


class Toolbox:
    """The tools of one workspace. MCP servers start with `specs`, which may take a moment.

    Raises:
        ToolError: the folder is gone.
    """

    def __init__(self, workspace: Path, paths: Paths, settings: ToolsSettings) -> None:
        self.workspace = workspace
        self._settings, self._config = settings, paths.config
        folder = Folder(workspace)
        self._writing = Writing(folder)
        running = Running(folder, settings.timeout_s, tuple(settings.pass_on.split()))
        own: tuple[tuple[tuple[ToolSpec, ...], Tool], ...] = (
            (Looking.specs, Looking(folder)),
            (Writing.specs, self._writing),
            *(((Running.specs, running),) if settings.run else ()),
        )
        self._own = tuple(spec for specs, _ in own for spec in specs)
        self._by_name = {spec.name: tool for specs, tool in own for spec in specs}
        self._mcp: McpServers | None = None
        self._lock = threading.Lock()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """All tools, as models are told of them."""
        return (*self._own, *self._servers().specs)

    @property
    def problems(self) -> list[str]:
        """What could not be used, in sentences."""
        return list(self._servers().problems)

    def _servers(self) -> McpServers:
        with self._lock:
            if self._mcp is None:
                problems: list[str] = []
                try:
                    servers = read_servers(self._config, problems)
                except SettingsError as error:
                    servers = {}
                    problems.append(str(error))
                self._mcp = McpServers(servers, self.workspace).open()
                self._mcp.problems[:0] = problems
            return self._mcp

    def prepare(self, call: Call) -> Prepared:
        """What a call would do. One that cannot be done becomes one that says so, and asks nothing."""
        try:
            if call.problem:
                raise ToolError(call.problem)
            tool = self._by_name.get(call.name)
            prepared = tool.prepare(call) if tool is not None else self._servers().prepare(call)
        except ToolError as error:
            said = f"error: {error}"
            why = " ".join(str(error).split())
            title = (
                _("a call of {call} that cannot be done: {why}", call=call.name, why=why)
                if call.name
                else _("a call that cannot be done: {why}", why=why)
            )
            prepared = Prepared(call, title, "", False, "", lambda __: Result(said, -1))
        return replace(prepared, root=str(self.workspace))

    def perform(self, prepared: Prepared, stop: threading.Event | None = None) -> Result:
        """Do it; see `performed`."""
        return performed(prepared, self._settings, stop)

    def undo(self, undo: Undo) -> str:
        """Take back what was written. Raises ToolError."""
        return self._writing.undo(undo)

    def close(self) -> None:
        """End the servers that were started here."""
        with self._lock:
            if self._mcp is not None:
                self._mcp.close()
                self._mcp = None


def performed(prepared: Prepared, settings: ToolsSettings, stop: threading.Event | None = None) -> Result:
    """Do it. A failure is a result, too; what is returned is as long as the settings allow at most."""
    try:
        result = prepared.perform(stop)
    except ToolError as error:
        stopped = isinstance(error, ToolStopped)
        result = Result(f"error: {error}", 0 if stopped else -1, stopped=stopped)
    return replace(result, text=cut_middle(result.text, settings.result_chars))
