"""claw-local: a personal assistant that lives on its owner's machine and gets better at being theirs by being used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Assistant", "__version__"]

if TYPE_CHECKING:
    from .assistant import Assistant


def __getattr__(name: str) -> Any:
    # Put off, so that `import claw_local` and `claw-local --version` stay quick.
    if name == "Assistant":
        from .assistant import Assistant

        return Assistant
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
