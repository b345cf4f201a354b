"""What learning needs beyond chatting, and how to get it here. It must never install anything by itself."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path

NEEDED = ("torch", "transformers", "peft", "safetensors", "claw_trainer")


def missing() -> list[str]:
    """The packages learning needs that are not installed."""
    return [name for name in NEEDED if not _there(name)]


def install_command() -> list[str]:
    """What installs them: the set-up script in a folder that has one and its `.venv` is in use, else pip."""
    root = Path(__file__).resolve().parents[2]
    script = root / "packaging" / "bootstrap.py"
    if script.is_file() and Path(sys.prefix).resolve() == (root / ".venv").resolve():
        return [sys.executable, str(script), "learn"]
    return [sys.executable, "-P", "-m", "pip", "install", "claw-local[train]"]


def as_typed(command: list[str]) -> str:
    """A command as a person types it."""
    if "pip" in command:
        return "pip install 'claw-local[train]'"
    return shlex.join(["python3", *command[1:]])


def _there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # In sys.modules, but as None: it was shut out.
        return False
