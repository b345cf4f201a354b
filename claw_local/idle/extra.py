"""What learning needs beyond chatting, and how to get it here. It must never install anything by itself."""

from __future__ import annotations

import importlib.util

from .. import extras
from ..extras import as_typed

__all__ = ["as_typed", "install_command", "missing"]
NEEDED = ("torch", "transformers", "peft", "safetensors", "claw_trainer")


def missing() -> list[str]:
    """The packages learning needs that are not installed."""
    return [name for name in NEEDED if not _there(name)]


def install_command() -> list[str]:
    """What installs them."""
    return extras.install_command("train")


def _there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # In sys.modules, but as None: it was shut out.
        return False
