"""What all tools have in common: a call as the model wrote it, what it would do, and what came of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..errors import ClawError


class ToolError(ClawError):
    """A tool could not do what was asked. The model reads the message too, and may try again."""


class ToolStopped(ToolError):
    """The person stopped it before its end."""


@dataclass(frozen=True)
class Call:
    """A call as the model wrote it. `problem`: what is wrong with it, in words; "" if nothing is."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class Undo:
    """How a written file becomes what it was.

    Attributes:
        path: below the workspace, with / between its parts.
        before: its content; None: there was no such file.
        after_sha256: of what was written: a file that is something else by now is left alone.
    """

    path: str
    before: bytes | None
    after_sha256: str


@dataclass(frozen=True)
class Result:
    """What came of a call.

    Attributes:
        text: what the model is shown.
        score: +1 it says that it succeeded, -1 it failed, 0 it does not say; None: its text may. Never more than that:
            no hint.
        undo: how to take it back; None where there is nothing to take back, or no way.
        stopped: the person stopped it before its end, which says nothing about the reply that called it.
    """

    text: str
    score: int | None = 0
    undo: Undo | None = None
    stopped: bool = False


@dataclass(frozen=True)
class Prepared:
    """A call that could be carried out now.

    Attributes:
        title: what it would do, in a few words: "write notes.txt".
        preview: what the person should see before they say yes: the diff, the command; "" if it asks nothing.
        asks: whether the person has to be asked.
        key: what "always" would cover from now on in the same chat.
        perform: does it. The event stops it.
        root: the workspace it was prepared for.
    """

    call: Call
    title: str
    preview: str
    asks: bool
    key: str
    perform: Callable[[threading.Event | None], Result]
    root: str = ""


class Tool(Protocol):
    """One tool, or several of a kind."""

    def prepare(self, call: Call) -> Prepared:
        """What the call would do. Raises ToolError: it cannot be done as it was asked."""
        ...


def cut_middle(text: str, most: int) -> str:
    """At most about `most` characters of a text: its beginning and its end, and how much is missing between."""
    if len(text) <= most:
        return text
    half = max(1, most // 2)
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
