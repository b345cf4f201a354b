"""textual-serve with our page and our door. It must never be imported without the extra `web`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aiohttp import web
from textual_serve.server import Server

from .web import HOST, MOST_PAGES, Door, guard

_PAGE = Path(__file__).parent / "page"


class PageServer(Server):
    """Serves one app process to each page.

    Args:
        command: the shell command that runs the app.
        announce: called once the server listens.
    """

    def __init__(self, command: str, door: Door, announce: Callable[[], None]) -> None:
        super().__init__(
            command,
            host=HOST,
            port=int(door.host.rpartition(":")[2]),
            title="claw-local",
            public_url=door.origin,
            templates_path=_PAGE,
        )
        self._door = door
        self._announce = announce
        self._pages = 0

    async def make_app(self) -> web.Application:
        """The application, with the guard before everything in it."""
        app = await self._make_app()
        app.middlewares.append(guard(self._door))
        app.router.add_get("/page.js", self._script)
        return app

    async def _script(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse(_PAGE / "page.js")

    async def on_startup(self, app: web.Application) -> None:
        self._announce()

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """One page: its process lives as long as it."""
        if self._pages >= MOST_PAGES:
            raise web.HTTPServiceUnavailable(
                text=f"{MOST_PAGES} pages are open already, each with a model of its own. Close one.\n"
            )
        self._pages += 1
        try:
            return await super().handle_websocket(request)
        finally:
            self._pages -= 1
