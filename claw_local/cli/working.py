"""Asking in a workspace: the replies, the calls between them, and asking the person about those that need it."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import typer

from ..errors import UsageError
from ..language import _
from ..reply import Answer, Reply
from .common import harmless
from .tools import as_json

if TYPE_CHECKING:
    from ..assistant import Assistant
    from ..talking.working import Decision
    from ..tools.base import Prepared

ALLOWABLE = ("write", "append", "run")
_WORD = re.compile(r"(\w*)[\s,:.-]*(.*)", re.DOTALL)
_MEANT: dict[str, Decision] = {
    "y": "once",
    "yes": "once",
    "a": "always",
    "always": "always",
    "n": "no",
    "no": "no",
    "w": "no",
    "q": "stop",
    "quit": "stop",
}


def allowed(names: Collection[str]) -> frozenset[str]:
    """What --allow named. Raises UsageError: no tool asks under that name."""
    for name in names:
        if name not in ALLOWABLE and "__" not in name:
            raise UsageError(
                _(
                    "--allow takes {names} or a tool of an MCP server, not {name}. `claw-local "
                    "tools list` shows the tools; the others ask nobody.",
                    names=", ".join(ALLOWABLE),
                    name=name,
                )
            )
    return frozenset(names)


class Working:
    """One question with tools. `answer`: the last reply; `calls`: what was done, as --json prints it."""

    def __init__(self, assistant: Assistant, allow: frozenset[str]) -> None:
        self.answer: Answer | None = None
        self.calls: list[dict[str, Any]] = []
        self._assistant, self._allow = assistant, allow

    def run(self, text: str, *, quiet: bool, **options: Any) -> Answer:
        """Work until a reply calls nothing. What is done meanwhile is told on the error output, unless `quiet`."""
        for step in self._assistant.tools.work(text, self._approve, **options):
            if isinstance(step, Reply):
                try:
                    self.answer = step.answer
                except BaseException:
                    step.close()
                    raise
            else:
                self.calls.append({**as_json(step.record), "result": step.text})
                if not quiet:
                    mark = {"done": "·", "failed": "!", "declined": "–", "stopped": "–"}.get(step.record.state, "·")
                    typer.echo(f"{mark} {harmless(step.record.title)}", err=True)
        assert self.answer is not None
        return self.answer

    def _approve(self, prepared: Prepared) -> tuple[Decision, str]:
        name = prepared.call.name
        if name in self._allow:
            return "option", ""
        if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
            typer.echo(
                _("{title} was not allowed. To allow it: --allow {name}", title=harmless(prepared.title), name=name),
                err=True,
            )
            return "unasked", ""
        return ask_person(prepared)


def ask_person(prepared: Prepared, *, err: bool = True) -> tuple[Decision, str]:
    """Show on the terminal what would be done, and ask. `err`: whether on the error output."""
    typer.echo(f"\n{harmless(prepared.title)}\n{harmless(prepared.preview)}", err=err)
    _forget_typed()
    while True:
        typer.echo(_("Allow it? y once, a always in this chat, n no, w no and why, q no and stop: "), err=err, nl=False)
        said = sys.stdin.readline()
        if not said:
            return "stop", ""
        word, rest = _WORD.match(said.strip()).groups()  # type: ignore[union-attr]
        chosen = _MEANT.get(word.lower())
        if word.lower() == "w" and not rest:
            typer.echo(_("Why not? "), err=err, nl=False)
            return "no", sys.stdin.readline().strip()
        if chosen in ("no", "stop"):
            return chosen, rest
        if chosen is not None and not rest:  # A sentence that begins with "a" is no yes.
            return chosen, ""


def _forget_typed() -> None:
    """What was typed before the question stood there is no answer to it."""
    try:
        import termios
    except ImportError:
        return
    try:
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    except (termios.error, OSError, ValueError):
        pass
