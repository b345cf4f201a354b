"""How to bring an extra to the very Python this program runs in. It must never install anything by itself."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def install_command(extra: str) -> list[str]:
    """What installs an extra here: for learning the set-up script where its `.venv` is in use, else pip, or uv where
    there is no pip."""
    script = ROOT / "packaging" / "bootstrap.py"
    if extra == "train" and script.is_file() and Path(sys.prefix).resolve() == (ROOT / ".venv").resolve():
        return [sys.executable, str(script), "learn"]
    named = f"claw-local[{extra}]"
    if getattr(sys, "frozen", False):  # This program is no Python that could be asked.
        return ["pip", "install", named]
    if importlib.util.find_spec("pip") is None and shutil.which("uv"):
        return ["uv", "pip", "install", "--python", sys.executable, named]
    return [sys.executable, "-P", "-m", "pip", "install", named]


def as_typed(command: list[str]) -> str:
    """A command as a person types it, in any shell."""
    words = ["python3", *command[1:]] if "learn" in command else [word for word in command if word != "-P"]
    return " ".join(f'"{word}"' if set(word) & set(" []()&'") else word for word in words)


def to_type(extra: str) -> str:
    """What a person types to get an extra."""
    return as_typed(install_command(extra))
