"""How hot the processor is."""

from __future__ import annotations

import math

import psutil

from ...language import _
from .reading import Reading, unknown

OF_PROCESSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "soc_thermal", "acpitz")
"""What Linux and FreeBSD call sensors of the processor; other sensors (disks, radio) are not asked."""


def hottest() -> Reading[float]:
    """The hottest sensor of the processor, in °C. Source: psutil.sensors_temperatures (Linux, FreeBSD)."""
    sensors = getattr(psutil, "sensors_temperatures", None)
    if sensors is None:
        return unknown(_("this system does not tell"))
    try:
        found = sensors()
    except (OSError, RuntimeError, psutil.Error) as error:
        return unknown(_("the sensors could not be read: {error}", error=error))
    values = [
        entry.current
        for name, entries in found.items()
        if name.lower().startswith(OF_PROCESSORS)
        for entry in entries
        # Some sensors answer nonsense when they are off.
        if entry.current is not None and math.isfinite(entry.current) and 0.0 < entry.current < 150.0
    ]
    return Reading(max(values)) if values else unknown(_("there is no sensor of the processor"))
