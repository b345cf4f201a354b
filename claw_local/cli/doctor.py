"""`claw-local doctor`: what works here, what does not, and how to mend it."""

from __future__ import annotations

import typer

from .common import JSON_OPTION, print_json
from .plainly import wished


def doctor(json_output: bool = JSON_OPTION) -> None:
    """Check this machine and this installation; exit 1 when chatting would not work."""
    from rich.console import Console

    from ..doctor import as_json, examine, exit_code, run_checks
    from ..paths import locate

    if not json_output:
        # Plain: no spinner, no colours.
        raise typer.Exit(examine(locate(), Console(force_terminal=False) if wished() else Console()))
    checks = run_checks(locate())
    print_json(as_json(checks))
    raise typer.Exit(exit_code(checks))
