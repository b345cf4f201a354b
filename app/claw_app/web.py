"""The app in a browser on this machine: textual-serve behind a one-time token. It must never be open to others.

Each open page is a process of its own that runs the app. Who opens the printed address first gets a cookie; the token
in it is worth nothing after that. Requests under another host name (DNS rebinding), from another site's page, or
without the cookie are refused, websockets too.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import shlex
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from claw_local import extras
from claw_local.errors import ClawError, UsageError
from claw_local.language import _

if TYPE_CHECKING:
    from aiohttp import web

HOST = "127.0.0.1"
MOST_PAGES = 4
"""Each page loads a model of its own."""
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self' ws://{host}; frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
)


def serve(arguments: Sequence[str], *, port: int = 0, announce: Callable[[str], None]) -> None:
    """Serve the app until Ctrl+C.

    Args:
        arguments: for `claw-local chat`, which runs once for each page.
        port: 0 takes a free one.
        announce: told the address to open, once it can be opened.

    Raises:
        ClawError: textual-serve is not installed. UsageError: the port is taken.
    """
    try:
        from aiohttp import web

        from .web_server import PageServer
    except ImportError as error:
        raise ClawError(
            _("The chat in a browser needs the extra `web`. Install it: {command}", command=extras.to_type("web"))
        ) from error
    listening = _listen(port)
    door = Door(f"{HOST}:{listening.getsockname()[1]}")
    # What textual-serve and aiohttp log is about themselves; what a person must know comes through `announce`.
    logging.getLogger("textual-serve").setLevel(logging.ERROR)
    logging.getLogger("aiohttp.server").addFilter(is_our_fault)
    server = PageServer(_command(arguments), door, lambda: announce(door.address))
    web.run_app(server.make_app(), sock=listening, print=None, access_log=None, shutdown_timeout=2.0)


def is_our_fault(record: logging.LogRecord) -> bool:
    """Whether what aiohttp logs is an error in here. A request that is none (a line of 9,000 characters) was answered
    with what is wrong with it, and tells nobody else anything."""
    from aiohttp.http_exceptions import HttpProcessingError

    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name != "nt":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        # Now, not when the server is ready: whoever opens the address at once waits a moment, and is not turned away.
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        said = getattr(error, "strerror", None) or error
        raise UsageError(f"Port {port} cannot be used: {said}. Leave --port out to take a free one.") from error
    return listening


def _command(arguments: Sequence[str]) -> str:
    """The shell command that runs the app for one page."""
    words = [sys.executable, "-m", "claw_local", *arguments]
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


class Door:
    """Who may come in. Knows the token, and the cookies given for it.

    Args:
        host: the one name and port this server answers to, such as `127.0.0.1:8000`.
    """

    def __init__(self, host: str) -> None:
        self.host = host
        self.origin = f"http://{host}"
        # Cookies of one host are shared by all its ports: the name tells two servers' cookies apart.
        self.cookie = f"claw-local-{host.rpartition(':')[2]}"
        self._token = secrets.token_urlsafe(32)
        self._used = False
        self._session = secrets.token_urlsafe(32)
        self.policy = _POLICY.format(host=host)

    @property
    def address(self) -> str:
        """The address to open, good for one browser."""
        return f"{self.origin}/?token={self._token}"

    def refusal(self, request: web.Request) -> str:
        """Why a request is refused before anything else is looked at; "" if it is not."""
        if request.headers.get("Host", "") != self.host:
            return f"Open the chat under its own address, {self.origin}."
        origin = request.headers.get("Origin")
        websocket = request.headers.get("Upgrade", "").lower() == "websocket"
        if (origin is None and websocket) or (origin is not None and origin != self.origin):
            return "This request comes from another page."
        if request.method not in ("GET", "HEAD"):
            return "There is nothing to send here."
        return ""

    def takes(self, token: str) -> bool:
        """Whether this is the token; it is used up then."""
        right = self._is_own(token) and not self._used
        self._used = self._used or right
        return right

    def turned_away(self, token: str) -> str:
        """What to say of a token that was not taken."""
        if self._is_own(token):
            return "This address was used already: it is good for one browser. Start `claw-local chat --web` again."
        return "This address is not right. Open the one that `claw-local chat --web` printed, all of it."

    def _is_own(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(errors="surrogatepass"), self._token.encode())

    def let_in(self, response: web.StreamResponse) -> None:
        """Give the browser its cookie."""
        response.set_cookie(self.cookie, self._session, httponly=True, samesite="Strict", path="/")

    def knows(self, request: web.Request) -> bool:
        """Whether the request has the cookie."""
        return hmac.compare_digest(request.cookies.get(self.cookie, "").encode(), self._session.encode())


Handler = Callable[["web.Request"], Awaitable["web.StreamResponse"]]


def guard(door: Door) -> Any:
    """The middleware that every request passes."""
    from aiohttp import web

    headers = {
        "Content-Security-Policy": door.policy,
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
    }

    def refuse(words: str, status: int = 403) -> web.Response:
        return web.Response(status=status, text=f"{words}\n")

    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = door.refusal(request)
        if refusal:
            return refuse(refusal)
        token = request.query.get("token")
        if token is not None and request.path == "/" and not door.knows(request):
            if not door.takes(token):
                return refuse(door.turned_away(token))
            entered = web.Response(status=303, headers={"Location": "/"})
            door.let_in(entered)
            return entered
        if token is not None:
            return web.Response(status=303, headers={"Location": "/"})
        if not door.knows(request):
            return refuse("Open the address that `claw-local chat --web` printed.", 401)
        return await handler(request)

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = await answer(request, handler)
        except web.HTTPException as refused:
            refused.headers.update(headers)
            raise
        if not response.prepared:
            response.headers.update(headers)
        return response

    return middleware
