"""A notification of the desktop. It must never fail, wait long, or let its words be read as anything but words."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from .probes.commands import NoAnswer, ask

TIMEOUT_S = 10.0

# The words come as arguments or in the environment, never inside a script.
APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)
POWERSHELL = """
$null = [Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]
$kind = [Windows.UI.Notifications.ToastTemplateType]::ToastText02
$xml = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent($kind)
$texts = $xml.GetElementsByTagName('text')
$null = $texts.Item(0).AppendChild($xml.CreateTextNode($env:CLAW_NOTE_TITLE))
$null = $texts.Item(1).AppendChild($xml.CreateTextNode($env:CLAW_NOTE_TEXT))
$toast = [Windows.UI.Notifications.ToastNotification]::new($xml)
$id = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\\WindowsPowerShell\\v1.0\\powershell.exe'
[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier($id).Show($toast)
"""


def show(title: str, text: str) -> bool:
    """Show it; whether the desktop took it."""
    try:
        if sys.platform == "darwin":
            return _macos(title, text)
        if sys.platform == "win32":
            return _windows(title, text)
        return linux(title, text)
    except Exception:  # Whatever a desktop does: the note waits in the app as well.
        return False


def _macos(title: str, text: str) -> bool:
    script = [part for line in APPLESCRIPT for part in ("-e", line)]
    try:
        ask("osascript", *script, title, text, timeout_s=TIMEOUT_S)
    except NoAnswer:
        return False
    return True


def _windows(title: str, text: str) -> bool:
    command = ["powershell", "-NoProfile", "-NonInteractive", "-WindowStyle", "Hidden", "-Command", POWERSHELL]
    done = subprocess.run(
        command,
        env={**os.environ, "CLAW_NOTE_TITLE": title, "CLAW_NOTE_TEXT": text},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode == 0


def linux(title: str, text: str, *, bus: str = "SESSION") -> bool:
    """Over D-Bus, as the Desktop Notifications Specification says. `bus`: its address, or its name."""
    from html import escape

    from jeepney import DBusAddress, MessageType, new_method_call
    from jeepney.io.blocking import open_dbus_connection

    notifications = DBusAddress(
        "/org/freedesktop/Notifications",
        bus_name="org.freedesktop.Notifications",
        interface="org.freedesktop.Notifications",
    )
    # Bodies may be read as markup.
    body: tuple[Any, ...] = ("claw-local", 0, "", title, escape(text, quote=False), [], {"transient": ("b", False)}, -1)
    with open_dbus_connection(bus, auth_timeout=TIMEOUT_S) as connection:
        message = new_method_call(notifications, "Notify", "susssasa{sv}i", body)
        reply = connection.send_and_get_reply(message, timeout=TIMEOUT_S)
    return bool(reply.header.message_type != MessageType.error)
