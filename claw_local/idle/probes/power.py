"""Whether the machine runs on mains power."""

from __future__ import annotations

import psutil

from ...language import _
from .reading import Reading, unknown

FULL = 99.0
"""A battery that is this full, in percent, is being charged if nobody says otherwise."""


def on_mains() -> Reading[bool]:
    """True without a battery, or with one that is plugged in. Source: psutil.sensors_battery."""
    sensors = getattr(psutil, "sensors_battery", None)
    if sensors is None:
        return unknown(_("this system does not tell"))
    try:
        battery = sensors()
    except (OSError, RuntimeError, psutil.Error) as error:
        return unknown(_("the battery could not be read: {error}", error=error))
    if battery is None:
        return Reading(True, _("no battery"))
    if battery.power_plugged is None:
        if battery.secsleft == psutil.POWER_TIME_UNLIMITED or battery.percent >= FULL:
            return Reading(True, _("the battery is full"))
        return unknown(_("the battery does not tell whether it is being charged"))
    return Reading(bool(battery.power_plugged), _("battery at {percent:.0f} %", percent=battery.percent))
