"""The connection one reply comes over: to the named server and nowhere else, and cut from any thread.

It must never know what is said over it.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from ..errors import SettingsError

CONNECT_S = 5.0
_LOOK_S = 0.05


def checked_url(url: str, setting: str) -> str:
    """The address of a server as a person wrote it, made whole.

    Raises:
        SettingsError: it is no http or https address.
    """
    whole = url.strip() if "://" in url else f"http://{url.strip()}"
    try:
        parts = urlsplit(whole)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or parts.username or parts.password:
        raise SettingsError(
            f"{setting} is not an address: {url!r}. Write it like http://127.0.0.1:11434, without a name or a password."
        )
    return whole.rstrip("/")


def is_loopback(url: str) -> bool:
    """Whether an address is this machine's own: then no proxy may come between."""
    host = (urlsplit(url).hostname or "").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def client_options(url: str) -> dict[str, Any]:
    """Options of an httpx client that speaks to this address only: no redirects, and no proxy before loopback."""
    return {"follow_redirects": False, "trust_env": not is_loopback(url)}


class Line:
    """Give `hooks` to an httpx client, and `cut` its connection from any thread, whatever it waits for.

    Closing a socket does not wake a thread that reads from it; shutting it down does.
    """

    def __init__(self) -> None:
        self.was_cut = False
        self._socket: socket.socket | None = None
        self._guard = threading.Lock()

    @property
    def hooks(self) -> dict[str, Any]:
        return {"request": [self._note]}

    def _note(self, request: Any) -> None:
        request.extensions["trace"] = self._trace

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            with self._guard:
                self._socket = info["return_value"].get_extra_info("socket")
                if self.was_cut:
                    self._shut()

    def cut(self) -> None:
        with self._guard:
            self.was_cut = True
            self._shut()

    def _shut(self) -> None:
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It is closed already.

    @contextmanager
    def cut_when(self, cancel: threading.Event | None) -> Iterator[None]:
        """While inside, a set `cancel` cuts the line."""
        if cancel is None:
            yield
            return
        left = threading.Event()

        def watch() -> None:
            while not left.wait(_LOOK_S):
                if cancel.is_set():
                    self.cut()
                    return

        watcher = threading.Thread(target=watch, name="claw-line", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            left.set()
