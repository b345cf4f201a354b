"""How long a Linux desktop has been left alone: Mutter's idle monitor, the screensaver, and logind, over D-Bus.

The shortest time that one of them tells is taken: somebody at another terminal is somebody. Whoever does not know is
left out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jeepney import DBusAddress, HeaderFields, MessageFlag, MessageType, Properties, new_method_call
from jeepney.io.blocking import DBusConnection, open_dbus_connection

from ...language import _
from .reading import Reading, unknown

TIMEOUT_S = 2.0
APART_S = 1.0
"""Between the two questions that tell whether a screensaver counts in seconds or in milliseconds."""
GRAPHICAL = ("x11", "wayland", "mir")

_MUTTER = DBusAddress(
    "/org/gnome/Mutter/IdleMonitor/Core",
    bus_name="org.gnome.Mutter.IdleMonitor",
    interface="org.gnome.Mutter.IdleMonitor",
)
_SAVER = DBusAddress(
    "/org/freedesktop/ScreenSaver", bus_name="org.freedesktop.ScreenSaver", interface="org.freedesktop.ScreenSaver"
)
_LOGIND = DBusAddress(
    "/org/freedesktop/login1", bus_name="org.freedesktop.login1", interface="org.freedesktop.login1.Manager"
)
_SESSION = "org.freedesktop.login1.Session"

_per_second: dict[str, float] = {}
"""How far each bus's screensaver counts in a second: by the bus's address, since that never changes."""


class NotTold(Exception):
    """Nobody answered, or not this."""


def idle_s(*, session: str = "SESSION", system: str = "SYSTEM") -> Reading[float]:
    """Seconds since the last key or movement, as far as anyone tells.

    Args:
        session, system: the buses' addresses, or their names.
    """
    told: dict[str, float] = {}
    _on_bus(session, {"Mutter": _mutter, "the screensaver": lambda bus: _screensaver(bus, session)}, told)
    _on_bus(system, {"logind": _logind}, told)
    if not told:
        return unknown(_("neither the desktop nor logind tells it"))
    who = min(told, key=lambda name: told[name])
    return Reading(told[who], who)


def _on_bus(name: str, askers: dict[str, Callable[[DBusConnection], float]], told: dict[str, float]) -> None:
    try:
        bus = open_dbus_connection(_address(name), auth_timeout=TIMEOUT_S)
    except Exception:  # No bus, no address, no right to it: whatever it is, nothing is known then.
        return
    with bus:
        for who, asker in askers.items():
            try:
                told[who] = asker(bus)
            except (NotTold, OSError, ValueError):
                continue


def _address(name: str) -> str:
    """Where a bus is. A timer's program, or one over ssh, may not have been told where the desktop's is."""
    usual = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "bus"
    if name == "SESSION" and not os.environ.get("DBUS_SESSION_BUS_ADDRESS") and usual.exists():
        return f"unix:path={usual}"
    return name


def _call(bus: DBusConnection, address: DBusAddress, method: str, signature: str | None = None, *body: Any) -> Any:
    reply = _answer(bus, new_method_call(address, method, signature, body))
    return reply[0]


def _answer(bus: DBusConnection, message: Any) -> tuple[Any, ...]:
    message.header.flags |= MessageFlag.no_auto_start  # Asking must not begin a desktop's service.
    reply = bus.send_and_get_reply(message, timeout=TIMEOUT_S)
    if reply.header.message_type == MessageType.error:
        raise NotTold(str(reply.header.fields.get(HeaderFields.error_name, "")))
    body: tuple[Any, ...] = reply.body
    if not body:
        raise NotTold("an empty answer")
    return body


def _mutter(bus: DBusConnection) -> float:
    """GNOME tells it in milliseconds."""
    return int(_call(bus, _MUTTER, "GetIdletime")) / 1000.0


def _screensaver(bus: DBusConnection, name: str) -> float:
    """Some count in seconds, as the interface says, others (KDE) in milliseconds: two questions a second apart tell."""
    value = int(_call(bus, _SAVER, "GetSessionIdleTime"))
    if value == 0:
        return 0.0
    key = os.environ.get("DBUS_SESSION_BUS_ADDRESS", name) if name == "SESSION" else name
    if key not in _per_second:
        time.sleep(APART_S)
        later = int(_call(bus, _SAVER, "GetSessionIdleTime"))
        if later < value:
            return 0.0  # Somebody moved meanwhile.
        _per_second[key] = 1000.0 if later - value >= 500.0 * APART_S else 1.0
        value = later
    return value / _per_second[key]


def _logind(bus: DBusConnection) -> float:
    """The least idle session of this person. A terminal's time is that of its last key; a desktop's counts only if it
    tells logind at all, which many do not."""
    times = []
    for __, user, __, __, path in _call(bus, _LOGIND, "ListSessions"):
        if user != os.getuid():
            continue
        session = DBusAddress(path, bus_name=_LOGIND.bus_name, interface=_SESSION)
        values = {key: value for key, (_, value) in _answer(bus, Properties(session).get_all())[0].items()}
        since = int(values.get("IdleSinceHintMonotonic", 0))
        if values.get("Class") != "user" or values.get("State") == "closing" or not since:
            continue
        if values.get("Type") in GRAPHICAL and not values.get("IdleHint"):
            times.append(0.0)
        elif values.get("Type") in GRAPHICAL or values.get("TTY"):
            times.append(max(0.0, time.monotonic() - since / 1e6))
    if not times:
        raise NotTold("no session tells it")
    return min(times)
