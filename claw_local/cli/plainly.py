"""Whether `claw-local chat` talks line by line. Asked before the first paint: it must never import what takes time."""

from __future__ import annotations

import os
import tomllib

from ..errors import ClawError
from ..paths import locate

VARIABLE = "CLAW_LOCAL_APP__PLAIN"


def wished() -> bool:
    """Whether the chat shall be plain without being asked: the setting app.plain, or a terminal that can do no more.

    Read without the settings' machinery, which would cost time; what is wrong with the file is said elsewhere.
    """
    if os.environ.get("TERM") == "dumb":
        return True
    for name, value in os.environ.items():
        if name.upper() == VARIABLE:
            return value.strip().lower() in ("1", "true", "yes", "on")
    try:
        app = tomllib.loads(locate().settings.read_text("utf-8")).get("app", {})
        return app.get("plain") is True
    except (ClawError, OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError):
        return False
