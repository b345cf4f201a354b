"""Who may come in: host names and pages that are known, keys, and bodies of a bounded size.

A page of some site must never reach the assistant through the person's browser: neither directly (its Origin is not
allowed), nor under a name of its own that leads here (DNS rebinding: its Host is not known). ASGI:
https://asgi.readthedocs.io. It must never know what is asked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..store import Store
from ..store.served import ServedKey
from .api import Api
from .asking import Caller
from .errors import Forbidden, NoKey, ServeError, TimedOut, TooLarge

LARGEST_BODY = 8 * 1024 * 1024
BODY_S = 60.0
"""Longest that a body may take to come, in seconds."""
USED_S = 60.0
"""How exact the time is at which a key was used last, in seconds: noting it costs a write."""
KEY_BEGINS = "claw-"
"""Our keys begin so: one that does and is not known is a mistake, not a placeholder."""
OPEN = ("/healthz",)
"""Addresses that need no key."""
_METHODS = "GET, POST, HEAD, OPTIONS"


@dataclass(frozen=True)
class Door:
    """Who may come in.

    Attributes:
        local: only this machine can reach the server.
        hosts: names under which it is known beside those of this machine, in lower case.
        origins: pages that may ask, as browsers write them: "http://localhost:3000".
        key_needed: nobody comes in without a key.
        learn: whether what comes without a key may teach.
    """

    local: bool = True
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    key_needed: bool = False
    learn: bool = False

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server."""
        name = _name(host)
        if name in self.hosts or name == "localhost":
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # An address cannot be made to lead elsewhere, as a name can.
        return address.is_loopback if self.local else True

    def lets_in(self, headers: Headers) -> None:
        """Raises Forbidden: under a name that is not known, or from a page that is not allowed."""
        host = headers.get("host", "")
        if not self.knows(host):
            raise Forbidden("This server is not known under that name. Its owner can allow it with --allow-host.")
        origin = headers.get("origin")
        if origin is not None:
            if origin not in self.origins and not _same(origin, host):
                raise Forbidden("Pages of that origin may not ask here. Its owner can allow it with --allow-origin.")
        elif headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Forbidden("Other sites may not ask here.")


class Guard:
    """ASGI middleware: sees to it that only what may come in reaches the app, and says who asks (`state["caller"]`)."""

    def __init__(self, app: ASGIApp, door: Door, store: Store, apis: Sequence[Api]) -> None:
        self._app = app
        self._door = door
        self._store = store
        self._apis = apis
        self._key_headers = sorted({api.key for api in apis if api.key})
        self._used: dict[int, float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        send = _with_headers(send, origin if origin in self._door.origins else "")
        try:
            self._door.lets_in(headers)
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                return await _preflight(headers)(scope, receive, send)
            scope.setdefault("state", {})["caller"] = await self._caller(scope, headers)
            body = await _body(headers, receive)
        except ServeError as error:
            return await error_response(error, scope["path"], self._apis)(scope, receive, send)
        return await self._app(scope, _replay(body, receive), send)

    def _find(self, shown: str) -> ServedKey | None:
        """Whose key that is, in what is there now: a backup may have been put in its place."""
        self._store.database.accept()
        return self._store.keys.find(shown)

    async def _caller(self, scope: Scope, headers: Headers) -> Caller:
        """Who asks. Raises NoKey."""
        shown = list(filter(None, (_bearer(headers), *(headers.get(name, "") for name in self._key_headers))))
        client = scope.get("client")
        parts = (client[0] if client else "", headers.get("user-agent", ""), headers.get("x-session-id", ""))
        address = "|".join(part[:100] for part in parts)
        for one in shown:
            key = await asyncio.to_thread(self._find, one)
            if key is not None:
                if time.monotonic() - self._used.get(key.id, -USED_S) >= USED_S:
                    self._used[key.id] = time.monotonic()
                    await asyncio.to_thread(self._store.keys.note_use, key.id)
                return Caller(key.id, key.name, key.learn, address)
        if (shown and self._door.key_needed) or any(one.startswith(KEY_BEGINS) for one in shown):
            raise NoKey("That key is not known here. `claw-local serve keys add NAME` makes one.")
        if self._door.key_needed and scope["path"] not in OPEN:
            raise NoKey("A key is needed here: Authorization: Bearer KEY.")
        return Caller(0, "", self._door.learn, address)


def error_response(error: ServeError, path: str, apis: Sequence[Api]) -> Response:
    """An error in the form of the API whose address it is."""
    fitting = [(len(prefix), api) for api in apis for prefix in api.prefixes if path.startswith(prefix)]
    api = max(fitting, key=lambda pair: pair[0])[1] if fitting else apis[0]
    return Response(json.dumps(api.error(error)), error.status, headers=error.headers, media_type="application/json")


def _bearer(headers: Headers) -> str:
    """The key of an Authorization header, also where its scheme was left out."""
    said = headers.get("authorization", "").strip()
    scheme, _, key = said.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else said if said.startswith(KEY_BEGINS) else ""


async def _body(headers: Headers, receive: Receive) -> list[Message]:
    """The body's messages, read whole. Raises TooLarge, TimedOut."""
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > LARGEST_BODY:
        raise _too_large()
    messages: list[Message] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                messages.append(message)
                size += len(message.get("body", b""))
                if size > LARGEST_BODY:
                    raise _too_large()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return messages
    except TimeoutError:
        raise TimedOut("The request's body took too long to come.") from None


def _too_large() -> TooLarge:
    return TooLarge(f"A request has at most {LARGEST_BODY // 2**20} MB.")


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting = iter(messages)

    async def again() -> Message:
        for message in waiting:
            return message
        return await receive()

    return again


def _with_headers(send: Send, origin: str) -> Callable[[Message], Awaitable[None]]:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Content-Type-Options"] = "nosniff"
            if origin:
                headers["Access-Control-Allow-Origin"] = origin
                headers.add_vary_header("Origin")
        await send(message)

    return sending


def _preflight(headers: Headers) -> Response:
    asked: dict[str, Any] = {
        "Access-Control-Allow-Methods": _METHODS,
        "Access-Control-Max-Age": "600",
        "Access-Control-Allow-Headers": headers.get("access-control-request-headers", ""),
    }
    return Response(status_code=204, headers=asked)


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") <= 1 else host


def _same(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.strip().lower() != ""
    except ValueError:  # No browser writes such a one: "http://[".
        return False
