"""Finds out why chatting or learning does not work here, and says the remedy.

It changes nothing unless it is asked to mend (`fix`), and must never load the engine or torch into its own process:
both may die.
"""

from __future__ import annotations

from .check import Check, as_json, exit_code
from .diagnosis import checks, run_checks
from .fixing import fix
from .report import examine, render

__all__ = ["Check", "as_json", "checks", "examine", "exit_code", "fix", "render", "run_checks"]
