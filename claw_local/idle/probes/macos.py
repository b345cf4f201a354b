"""How long a Mac has been left alone, through IOKit's registry."""

from __future__ import annotations

import re

from ...language import _
from .commands import NoAnswer, ask
from .reading import Reading, unknown

_IDLE = re.compile(r'"HIDIdleTime"\s*=\s*(\d+)')


def idle_s() -> Reading[float]:
    """Seconds since the last key or movement. Source: HIDIdleTime of IOHIDSystem, in nanoseconds."""
    try:
        return read(ask("ioreg", "-c", "IOHIDSystem", "-d", "4"))
    except NoAnswer as error:
        return unknown(str(error))


def read(text: str) -> Reading[float]:
    """The smallest idle time in what ioreg printed."""
    found = [int(value) for value in _IDLE.findall(text)]
    return Reading(min(found) / 1e9, "ioreg") if found else unknown(_("ioreg does not tell it"))
