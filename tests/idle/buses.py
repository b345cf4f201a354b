"""A message bus of its own, and services on it that answer as desktops do: there is no desktop where tests run."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jeepney import HeaderFields, MessageType, new_error, new_method_return
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection

Answers = dict[tuple[str, str], Callable[..., tuple[str, tuple[Any, ...]]]]
"""(object path, method) -> a function of the call's arguments that gives signature and values."""


@contextmanager
def bus(folder: Path) -> Iterator[str]:
    """A real dbus-daemon; gives its address."""
    address = f"unix:path={folder / 'bus'}"
    program = shutil.which("dbus-daemon")
    assert program is not None
    daemon = subprocess.Popen([program, "--session", "--nofork", f"--address={address}"], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 10
        while not (folder / "bus").exists():
            assert time.monotonic() < end and daemon.poll() is None, "the bus did not begin"
            time.sleep(0.02)
        yield address
    finally:
        daemon.terminate()
        daemon.wait()


@contextmanager
def service(address: str, name: str, answers: Answers) -> Iterator[list[tuple[Any, ...]]]:
    """Somebody on that bus by this name; gives what they were asked."""
    asked: list[tuple[Any, ...]] = []
    connection = open_dbus_connection(address)
    connection.send_and_get_reply(message_bus.RequestName(name))
    ended = threading.Event()

    def answer() -> None:
        while not ended.is_set():
            try:
                call = connection.receive(timeout=0.1)
            except TimeoutError:
                continue
            if call.header.message_type != MessageType.method_call:
                continue
            fields = call.header.fields
            key = (fields[HeaderFields.path], fields[HeaderFields.member])
            asked.append((*key, *call.body))
            if key in answers:
                signature, values = answers[key](*call.body)
                connection.send(new_method_return(call, signature, values))
            else:
                connection.send(new_error(call, "org.freedesktop.DBus.Error.UnknownMethod"))

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield asked
    finally:
        ended.set()
        thread.join()
        connection.close()
