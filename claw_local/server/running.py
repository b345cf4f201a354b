"""The server at work: uvicorn around the app, from a free port to Ctrl-C. It must never know what is asked."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import UsageError

if TYPE_CHECKING:
    import uvicorn

    from ..assistant import Assistant
    from .guard import Door

MOST_CONNECTIONS = 512
CLIENTS = 4
"""Clients whose requests the engine orders itself, each as many as it writes at once; more wait before it."""
LINGER_S = 5
"""How long a stop waits for answers under way, in seconds."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens. Port 0 takes a free one.

    Raises:
        UsageError: the address cannot be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(f"{host} is no address of this machine ({error.strerror or error}). Try 127.0.0.1.") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise UsageError(
            f"{host}:{port} cannot be had ({error.strerror or error}). Choose another with --port; 0 takes a free one."
        ) from error
    return listening


def run(assistant: Assistant, door: Door, listening: socket.socket, announce: Callable[[], None]) -> None:
    """Serve until Ctrl-C or SIGTERM. `announce` is called once requests are answered. Raises as `make_server`."""
    try:
        make_server(assistant, door, announce).run([listening])
    except KeyboardInterrupt:
        pass  # uvicorn raises it once more, after it has stopped.


def make_server(assistant: Assistant, door: Door, announce: Callable[[], None]) -> uvicorn.Server:
    """The server, not begun yet; its `run` takes the sockets to listen on. As many answers are written at the same time
    as the model is to decode together.

    Raises:
        UsageError: FastAPI and uvicorn are not installed. ModelError: there is no model.
    """
    try:
        from uvicorn import Config, Server

        from .app import make_app
        from .protocol import Punctual
        from .service import Serve
    except ImportError as error:
        raise UsageError('Serving needs the extra `serve`. Install it: pip install "claw-local[serve]"') from error

    together = assistant.settings.model.together
    # An engine that writes several replies at once shares its places out itself, and takes them from whoever has many:
    # so the next clients have to be let in to it while one alone fills it.
    clients = CLIENTS if together > 1 and assistant.model_sha256 else 1
    service = Serve(assistant, places=together * clients, each=together)

    class Announced(Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # First, so that answers under way end now and are whole, and nobody waits for them.
            await service.close()
            await super().shutdown(sockets)

    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    # It warns of each piece that is sent to a client that has just gone: they do that all the time.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    config = Config(
        make_app(service, door),
        http=Punctual,  # On h11: others that may be installed have no bound for a request's headers.
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=LINGER_S,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return Announced(config)
