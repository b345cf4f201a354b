"""The shells' completion scripts, as `claw-local --show-completion` prints them."""

from __future__ import annotations

FILES = {"bash": "claw-local.bash", "zsh": "_claw-local", "fish": "claw-local.fish", "powershell": "claw-local.ps1"}


def scripts() -> dict[str, str]:
    """File name -> script. What is offered is asked of the program itself each time Tab is pressed."""
    from typer.completion import get_completion_script

    return {
        file: get_completion_script(prog_name="claw-local", complete_var="_CLAW_LOCAL_COMPLETE", shell=shell).strip()
        + "\n"
        for shell, file in FILES.items()
    }
