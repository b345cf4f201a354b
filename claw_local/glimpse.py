"""A setting read before the settings' machinery is there: the first paint may not wait for that. It must never say what
is wrong with the file: whoever reads all of it does."""

from __future__ import annotations

import os
import tomllib

from .named_text import read_text
from .paths import Paths

PREFIX = "CLAW_LOCAL_"
_LARGEST = 4_000_000


def glimpse(paths: Paths, section: str, name: str) -> object:
    """What the environment or settings.toml says of `section.name`, unchecked; None where neither says anything."""
    variable = f"{PREFIX}{section}__{name}".upper()
    for key, value in os.environ.items():
        if key.upper() == variable:
            return value
    try:
        found: object = tomllib.loads(read_text(paths.settings, most=_LARGEST)).get(section, {}).get(name)
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return found
