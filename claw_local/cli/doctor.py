"""`claw-local doctor`: what works here, what does not, and how to mend it."""

from __future__ import annotations

import typer

from .common import JSON_OPTION, print_json


def doctor(json_output: bool = JSON_OPTION) -> None:
    """Check this machine and this installation; exit 1 when chatting would not work."""
    from rich.console import Console

    from ..doctor import as_json, exit_code, render, run_checks
    from ..paths import locate

    checks = run_checks(locate())
    if json_output:
        print_json(as_json(checks))
    else:
        render(checks, Console())
    raise typer.Exit(exit_code(checks))
