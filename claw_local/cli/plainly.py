"""Whether `claw-local chat` talks line by line. Asked before the first paint: it must never import what takes time."""

from __future__ import annotations

import os

from ..errors import ClawError
from ..glimpse import glimpse
from ..paths import locate


def wished() -> bool:
    """Whether the chat shall be plain without being asked: the setting app.plain, or a terminal that can do no more.

    Read without the settings' machinery, which would cost time; what is wrong with the file is said elsewhere.
    """
    if os.environ.get("TERM") == "dumb":
        return True
    try:
        said = glimpse(locate(), "app", "plain")
    except ClawError:
        return False
    return said is True or (isinstance(said, str) and said.strip().lower() in ("1", "true", "yes", "on"))
