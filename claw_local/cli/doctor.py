"""`claw-local doctor`: what works here, what does not, and how to mend it."""

from __future__ import annotations

from pathlib import Path

import typer

from ..language import _
from .common import JSON_OPTION, print_json
from .plainly import wished


def doctor(
    mend: bool = typer.Option(False, "--fix", help="Mend what can be mended without losing anything."),
    json_output: bool = JSON_OPTION,
) -> None:
    """Check this machine and this installation; exit 1 when chatting would not work."""
    from rich.console import Console

    from ..doctor import as_json, examine, exit_code, fix, run_checks
    from ..doctor.diagnosis import home_checks
    from ..doctor.home import read_themes_with
    from ..paths import locate

    read_themes_with(_read_theme)
    mended = list(fix(locate(), home_checks(locate()))) if mend else []
    if not json_output:
        for done in mended:
            typer.echo(f"{done.name}: {done.detail}")
        if mend and not mended:
            typer.echo(_("There was nothing to mend that can be mended by itself."))
        # Plain: no spinner, no colours.
        raise typer.Exit(examine(locate(), Console(force_terminal=False) if wished() else Console()))
    checks = run_checks(locate())
    found = as_json(checks)
    print_json({**found, "fixed": as_json(mended)["checks"]} if mend else found)
    raise typer.Exit(exit_code(checks))


def _read_theme(file: Path) -> object:
    """Read a person's theme as the app does. Raises OSError, ValueError."""
    from claw_app.themes import read_whole

    return read_whole(file)
