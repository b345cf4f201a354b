"""What each built-in tool takes, and how it is told to a model. Typed once: schema and checks come from here."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..engine.tool_forms import ToolSpec
from .base import Call, ToolError

T = TypeVar("T", bound="Arguments")
LONGEST_TEXT = 256 * 1024
"""Characters of one written text."""


class Arguments(BaseModel):
    """What a tool takes. More than that is let pass: small models are generous."""

    model_config = ConfigDict(extra="ignore", str_max_length=LONGEST_TEXT)


class List(Arguments):
    """List a folder of the workspace."""

    path: str = Field(".", description="a folder in the workspace")
    depth: int = Field(1, ge=1, le=5, description="how many levels")


class Read(Arguments):
    """Read a text file of the workspace."""

    path: str = Field(description="a file in the workspace")
    start: int = Field(1, ge=1, description="first line")
    lines: int = Field(200, ge=1, le=2000, description="how many lines")


class Search(Arguments):
    """Find lines that contain a text, capitals or not, in the files of the workspace."""

    text: str = Field(min_length=1, max_length=500, description="what to find")
    path: str = Field(".", description="a folder or file in the workspace")
    files: str = Field("*", max_length=200, description="only files of such names, as in *.py")


class Write(Arguments):
    """Write a whole text file in the workspace: a new one, or in place of what it held."""

    path: str = Field(description="a file in the workspace")
    content: str = Field(description="the whole new text")


class Append(Arguments):
    """Add text at the end of a file in the workspace."""

    path: str = Field(description="a file in the workspace")
    content: str = Field(description="the text to add")


class Run(Arguments):
    """Run a command in the workspace. The result ends with its exit code."""

    command: str = Field(min_length=1, max_length=4000, description="a program and its arguments")
    shell: bool = Field(False, description="true only where pipes or redirections are needed")


def spec_of(name: str, kind: type[Arguments]) -> ToolSpec:
    """A tool as models are told of it."""
    schema = kind.model_json_schema()
    properties = {key: _plain(about) for key, about in schema["properties"].items()}
    told = {"type": "object", "properties": properties, "required": schema.get("required", [])}
    return ToolSpec(name, " ".join((kind.__doc__ or "").split()), json.dumps(told))


def _plain(about: dict[str, Any]) -> dict[str, Any]:
    """Without what only takes room in a prompt, or slows a grammar down."""
    return {key: value for key, value in about.items() if key in ("type", "description")}


def checked(kind: type[T], call: Call) -> T:
    """A call's arguments.

    Raises:
        ToolError: something is missing, or not what it has to be.
    """
    try:
        return kind.model_validate(call.arguments)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the arguments"
        raise ToolError(f"{call.name}: {where}: {first['msg']}.") from error
