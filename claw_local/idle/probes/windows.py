"""How long a Windows desktop has been left alone, through GetLastInputInfo."""

from __future__ import annotations

import ctypes
from typing import Any

from ...language import _
from .reading import Reading, unknown

_TICKS = 2**32


class _LastInput(ctypes.Structure):
    """LASTINPUTINFO of winuser.h."""

    _fields_ = (("cbSize", ctypes.c_uint32), ("dwTime", ctypes.c_uint32))


def idle_s(windll: Any = None) -> Reading[float]:
    """Seconds since the last key or movement in this session. Source: GetLastInputInfo and GetTickCount, whose 32-bit
    milliseconds begin anew every 49.7 days."""
    windll = windll if windll is not None else getattr(ctypes, "windll", None)
    if windll is None:
        return unknown(_("this is not Windows"))
    info = _LastInput(ctypes.sizeof(_LastInput), 0)
    if not windll.user32.GetLastInputInfo(ctypes.byref(info)):
        return unknown(_("Windows does not tell it"))
    now = int(windll.kernel32.GetTickCount()) % _TICKS
    return Reading(((now - info.dwTime) % _TICKS) / 1000.0, "GetLastInputInfo")
