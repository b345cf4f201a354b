"""Which MCP servers there are: the file mcp.json beside settings.toml, in the form other programs use too."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..errors import SettingsError
from ..language import _
from ..named_text import read_text
from ..settings import has_login

FILE = "mcp.json"
FORM = '{"mcpServers": {"NAME": {"command": "…"}}}'
LARGEST = 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}\Z")
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")


class McpServer(BaseModel):
    """One server: a command to start, or an address that speaks streamable HTTP."""

    model_config = ConfigDict(extra="ignore")

    command: str = ""
    """A program that speaks MCP on its standard input and output."""
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    """Variables it gets beside the usual ones. ${NAME} stands for the value of a variable of yours."""
    cwd: str = ""
    """Where it starts. Empty: the workspace."""
    url: str = ""
    """Address of a server that runs already."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with each request. ${NAME} stands for the value of a variable of yours: no key has to stand in the file."""
    disabled: bool = False
    timeout_s: float = Field(60.0, gt=0.0, le=3600.0)
    """Longest that one call may take, in seconds."""
    trusted: list[str] = Field(default_factory=list)
    """Tools of it that need not ask; all others do."""

    @model_validator(mode="after")
    def _one_way(self) -> McpServer:
        if bool(self.command) == bool(self.url):
            raise ValueError("it needs either a command or a url")
        if self.url and (has_login(self.url) or not self.url.startswith(("http://", "https://"))):
            raise ValueError("its url has to begin with http:// or https://, without a name or a password")
        return self


def read_servers(config: Path, problems: list[str] | None = None) -> dict[str, McpServer]:
    """The servers of a settings folder, by name; none if there is no file.

    Args:
        problems: takes a sentence for each server that cannot be; the others are returned. None: the first one raises.

    Raises:
        SettingsError: the file is no JSON, or a server in it cannot be; the message names both.
    """
    file = config / FILE
    try:
        if not file.exists():
            return {}
        if file.is_file() and file.stat().st_size > LARGEST:
            raise SettingsError(_("{file} is too large to be a list of servers. Mend it, or rename it.", file=file))
        said = json.loads(read_text(file, most=LARGEST))
    except (OSError, ValueError, RecursionError) as error:
        words = getattr(error, "strerror", None) or error
        raise SettingsError(
            _("{file} cannot be read as JSON ({error}). Mend it, or rename it.", file=file, error=words)
        ) from error
    listed = said.get("mcpServers") if isinstance(said, dict) else None
    if not isinstance(listed, dict):
        raise SettingsError(_("{file} has to look like {form}. Mend it.", file=file, form=FORM))
    servers = {}
    for name, about in listed.items():
        try:
            server = _server(file, name, about)
        except SettingsError as error:
            if problems is None:
                raise
            problems.append(str(error))
            continue
        if not server.disabled:
            servers[name] = server
    return servers


def _server(file: Path, name: str, about: Any) -> McpServer:
    """One entry. Raises SettingsError."""
    if not _NAME.match(name):
        raise SettingsError(
            _(
                "In {file}, {name!r} is no name: letters, digits, - and _, at most 32 of them.",
                file=file,
                name=name[:80],
            )
        )
    try:
        return McpServer.model_validate(about)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (name, *first["loc"])))
        raise SettingsError(
            _(
                "In {file}, {where}: {reason}. Mend it.",
                file=file,
                where=where,
                reason=first["msg"].removeprefix("Value error, "),
            )
        ) from error


def filled_in(values: dict[str, str], variables: Any = None) -> dict[str, str]:
    """Values with ${NAME} replaced.

    Raises:
        SettingsError: a variable is not set.
    """
    there = os.environ if variables is None else variables

    def value(found: re.Match[str]) -> str:
        if found[1] not in there:
            raise SettingsError(
                _(
                    "{file} names the variable {variable}, which is not set. Set it, and start again.",
                    file=FILE,
                    variable=found[1],
                )
            )
        return str(there[found[1]])

    return {name: _VARIABLE.sub(value, text) for name, text in values.items()}
