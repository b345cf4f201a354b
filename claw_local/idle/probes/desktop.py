"""How long the desktop has been left alone, whatever the system. It must never fail: what is not known is unknown."""

from __future__ import annotations

import sys

from ...language import _
from .reading import Reading, unknown


def idle_s() -> Reading[float]:
    """Seconds since the last key or movement anywhere on this person's desktop."""
    try:
        if sys.platform == "darwin":
            from . import macos

            return macos.idle_s()
        if sys.platform == "win32":
            from . import windows

            return windows.idle_s()
        from . import linux

        return linux.idle_s()
    except ImportError as error:
        return unknown(_("{package} is not installed", package=error.name or _("a package")))
