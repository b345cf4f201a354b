"""Whether the machine runs on mains power."""

from __future__ import annotations

import psutil

from .reading import Reading, unknown

FULL = 99.0
"""A battery that is this full, in percent, is being charged if nobody says otherwise."""


def on_mains() -> Reading[bool]:
    """True without a battery, or with one that is plugged in. Source: psutil.sensors_battery."""
    sensors = getattr(psutil, "sensors_battery", None)
    if sensors is None:
        return unknown("this system does not tell")
    try:
        battery = sensors()
    except (OSError, RuntimeError, psutil.Error) as error:
        return unknown(f"the battery could not be read: {error}")
    if battery is None:
        return Reading(True, "no battery")
    if battery.power_plugged is None:
        if battery.secsleft == psutil.POWER_TIME_UNLIMITED or battery.percent >= FULL:
            return Reading(True, "the battery is full")
        return unknown("the battery does not tell whether it is being charged")
    return Reading(bool(battery.power_plugged), f"battery at {battery.percent:.0f} %")
