"""`claw-local tools`: which there are, what they did, and taking it back."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from ..errors import UsageError
from ..language import _
from . import complete
from .common import JSON_OPTION, print_json, print_table, short

if TYPE_CHECKING:
    from ..store import ToolCall

app = typer.Typer(help="What the assistant may do in a chat's workspace, and what it did.", no_args_is_help=True)
CHAT = typer.Argument(..., help="The chat's id.", autocompletion=complete.chat_ids)


@app.command("list")
def show_all(
    workspace: Path | None = typer.Option(
        None, "--workspace", help="The folder to work in; without it, the one you are in."
    ),
    json_output: bool = JSON_OPTION,
) -> None:
    """List the tools that a chat with a workspace has, those of MCP servers too."""
    from ..paths import locate
    from ..settings import load
    from ..tools.toolbox import Toolbox, workspace_of

    paths = locate()
    with ExitStack() as stack:
        try:
            root, shown = workspace_of(workspace or Path(), paths), True
        except UsageError:
            if workspace is not None:
                raise
            # The tools are the same in any folder, and nobody said that it should be this one.
            root, shown = Path(stack.enter_context(TemporaryDirectory(prefix="claw-local-"))), False
        box = Toolbox(root, paths, load(paths).tools)
        stack.callback(box.close)
        specs, problems = box.specs, box.problems
    if json_output:
        print_json({"workspace": str(root) if shown else "", "tools": specs, "problems": problems})
        return
    print_table([(spec.name, spec.description) for spec in specs])
    for problem in problems:
        typer.echo(problem, err=True)


@app.command()
def log(
    chat: int | None = typer.Option(None, "--chat", help="Of this chat alone.", autocompletion=complete.chat_ids),
    limit: int = typer.Option(50, "--limit", min=1, max=1_000_000, help="How many, the newest first."),
    json_output: bool = JSON_OPTION,
) -> None:
    """List what was called, who allowed it, and what came of it; newest first."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        if chat is not None:
            assistant.chat(chat)
        calls = assistant.tools.log(chat, limit=limit)
    if json_output:
        print_json({"calls": [as_json(call) for call in calls]})
        return
    if not calls:
        typer.echo(_("No tool was called yet. A chat gets tools with a workspace: claw-local chat --workspace FOLDER"))
        return
    print_table([_row(call) for call in calls], right={0, 1})


@app.command()
def undo(
    chat: int = CHAT,
    call: int | None = typer.Option(None, "--call", help="This call; its id stands in `tools log`. Else the newest."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Give a file back what it held before it was written. What a command did cannot be undone."""
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        done = assistant.tools.undo(chat, call)
    if json_output:
        print_json({"undone": done})
    else:
        typer.echo(done)


@app.command()
def workspace(
    chat: int = CHAT,
    folder: Path | None = typer.Argument(None, help="The folder from now on; without it, says which it is."),
    none: bool = typer.Option(False, "--none", help="Take the workspace away, and with it the chat's tools."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Say or change the one folder that a chat's tools may touch."""
    if folder is not None and none:
        raise UsageError(_("Name a folder or say --none, not both."))
    from ..assistant import Assistant

    with Assistant.open() as assistant:
        if folder is not None:
            record = assistant.tools.give(chat, folder)
        else:
            record = assistant.tools.take(chat) if none else assistant.chat(chat)
    if json_output:
        print_json({"chat_id": record.id, "workspace": record.workspace, "always": record.always})
    elif record.workspace:
        typer.echo(_("Chat {id} works in {workspace}", id=record.id, workspace=record.workspace))
        for key in record.always:
            typer.echo("  " + _("without asking: {key}", key=key))
    else:
        typer.echo(_("Chat {id} has no workspace, so it has no tools.", id=record.id))


_ALLOWED = {
    "free": "needs no leave",
    "once": "allowed once",
    "always": "always allowed",
    "option": "by --allow",
    "no": "declined",
}


def _row(call: ToolCall) -> tuple[str, ...]:
    when = call.created_at[:16].replace("T", " ")
    return str(call.id), str(call.chat_id), when, call.state, _ALLOWED[call.decision], short(call.title)


def as_json(call: ToolCall) -> dict[str, Any]:
    """A call as commands print it; not what a file held before."""
    kept = (
        "id",
        "chat_id",
        "reply_id",
        "result_id",
        "name",
        "arguments",
        "title",
        "decision",
        "state",
        "score",
        "path",
    )
    return {**{name: getattr(call, name) for name in kept}, "workspace": call.workspace, "created_at": call.created_at}
