"""`claw-local chat`: opens the app, in this terminal or in a browser."""

from __future__ import annotations

import os
import sys

import typer

from ..errors import UsageError
from ..language import _
from . import complete
from .common import with_profile
from .plainly import wished


def chat(
    ctx: typer.Context,
    chat_id: int | None = typer.Option(None, "--chat", help="Open this chat.", autocompletion=complete.chat_ids),
    model: str | None = typer.Option(
        None, "--model", help="Another model than that of the settings.", autocompletion=complete.model_names
    ),
    profile: str | None = typer.Option(None, "--profile", help="Go by what this profile keeps to."),
    workspace: str | None = typer.Option(
        None, "--workspace", help="A folder that this chat's tools may list, read, search and, if you allow it, change."
    ),
    web: bool = typer.Option(
        False, "--web", help="Serve the app to a browser on this machine, behind a one-time token."
    ),
    plain: bool | None = typer.Option(
        None,
        "--plain/--full",
        help="Line by line, without boxes, colours or animation: for screen readers and simple terminals.",
    ),
    port: int = typer.Option(0, "--port", min=0, max=65535, help="With --web: the port; 0 takes a free one."),
) -> None:
    """Open the app."""
    debug = bool(ctx.find_root().params.get("debug"))
    if web and plain:
        raise UsageError(_("--plain and --web contradict each other: choose one."))
    if port and not web:
        raise UsageError(_("--port goes with --web: claw-local chat --web --port 8000"))
    if workspace is not None and not workspace.strip():
        raise UsageError(_("Name the folder that is to be the workspace, or leave --workspace out."))
    if web:
        _serve(chat_id, model, profile, workspace, port, debug)
        return
    # A page of `chat --web` is drawn through pipes.
    in_page = "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")
    if plain or (plain is None and not in_page and sys.stdin.isatty() and wished()):
        from . import plain as lines

        raise typer.Exit(lines.run(model=model, settings=with_profile(profile), chat_id=chat_id, workspace=workspace))
    if not in_page and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(_('`claw-local chat` needs a terminal. In scripts and pipes use: claw-local ask "…"'))
    from claw_app import run

    raise typer.Exit(
        run(model=model, settings=with_profile(profile), chat_id=chat_id, workspace=workspace or "", debug=debug)
    )


def _let_pages_open_the_store() -> None:
    """Each page is a program of its own, and has no terminal to ask for a passphrase in."""
    from ..paths import locate

    paths = locate()
    if paths.encryption.exists():
        from ..store import opening, unlocking

        opening.key_of(paths.database)
        os.environ.update(unlocking.for_children(paths.database))


def _serve(
    chat_id: int | None, model: str | None, profile: str | None, workspace: str | None, port: int, debug: bool
) -> None:
    from claw_app.web import serve

    _let_pages_open_the_store()
    if chat_id is not None or workspace is not None:
        from ..assistant import Assistant

        # Said here, not in a page that then stays empty.
        assistant = Assistant.open()
        try:
            if chat_id is not None:
                assistant.chat(chat_id)
            if workspace is not None:
                assistant.tools.checked(workspace)
        finally:
            assistant.close()
    arguments = [*(["--debug"] if debug else []), "chat"]
    if chat_id is not None:
        arguments += ["--chat", str(chat_id)]
    if model is not None:
        arguments += ["--model", model]
    if profile is not None:
        arguments += ["--profile", profile]
    if workspace is not None:
        arguments += ["--workspace", os.path.abspath(os.path.expanduser(workspace))]

    def announce(address: str) -> None:
        typer.echo(_("The chat is open for one browser on this machine:") + f"\n\n  {address}\n")
        typer.echo(_("The address works once and for nobody else. Ctrl+C ends it."))
        sys.stdout.flush()

    serve(arguments, port=port, announce=announce)
