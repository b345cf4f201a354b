"""The connection one reply comes over: to the named server and nowhere else, and cut from any thread.

It must never know what is said over it.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from ..errors import SettingsError
from ..language import _
from ..settings import has_login, without_login
from ..settings_checks import is_address

CONNECT_S = 5.0
LONGEST_ANSWER = 2**23
"""Most bytes of an answer that is read whole (a list of models, an error)."""
_LOOK_S = 0.05


def checked_url(url: str, setting: str) -> str:
    """The address of a server as a person wrote it, made whole.

    Raises:
        SettingsError: it is no http or https address.
    """
    whole = url.strip() if "://" in url else f"http://{url.strip()}"
    if not is_address(url) or has_login(url):
        raise SettingsError(
            _(
                "{setting} is not an address: {url!r}. Write it like http://127.0.0.1:11434, "
                "without a name or a password.",
                setting=setting,
                url=without_login(url),
            )
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


def whole(chunks: Iterable[bytes], seconds: float) -> bytes:
    """An answer that is read whole.

    Raises:
        ValueError: it is longer than any such answer is. TimeoutError: it takes longer than this in all.
    """
    until = time.monotonic() + seconds
    held = bytearray()
    for chunk in chunks:
        held += chunk
        if len(held) > LONGEST_ANSWER:
            raise ValueError("the answer has no end")
        if time.monotonic() > until:
            raise TimeoutError("the answer takes too long")
    return bytes(held)


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
    def cut_after(self, seconds: float) -> Iterator[None]:
        """While inside, the line is cut once this time is over, however busily the server drips.

        Raises:
            TimeoutError: that is what ended it.
        """
        timer = threading.Timer(seconds, self.cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception as error:
            if self.was_cut:
                raise TimeoutError("the answer takes too long") from error
            raise
        finally:
            timer.cancel()

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
