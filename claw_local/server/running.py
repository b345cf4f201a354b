"""The server at work: uvicorn around the app, from a free port to Ctrl-C. It must never know what is asked."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .. import extras
from ..errors import ClawError, UsageError
from ..language import _

if TYPE_CHECKING:
    import uvicorn

    from ..assistant import Assistant
    from .guard import Door

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
    """Serve until Ctrl-C, SIGTERM or a closed terminal. `announce` is called once requests are answered. Raises as
    `make_server`."""
    server = make_server(assistant, door, announce)
    with _hanging_up(server):
        try:
            server.run([listening])
        except KeyboardInterrupt:
            pass  # uvicorn raises it once more, after it has stopped.


@contextmanager
def _hanging_up(server: uvicorn.Server) -> Iterator[None]:
    """While inside, a terminal that is closed (SIGHUP) ends a server in order, unless whoever began it ignores that."""
    number = getattr(signal, "SIGHUP", None)
    if number is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(number)
    if before is not signal.SIG_IGN:
        signal.signal(number, server.handle_exit)
    try:
        yield
    finally:
        signal.signal(number, before or signal.SIG_DFL)


def make_server(assistant: Assistant, door: Door, announce: Callable[[], None]) -> uvicorn.Server:
    """The server, not begun yet; its `run` takes the sockets to listen on. As many answers are written at the same time
    as the model is to decode together.

    Raises:
        ClawError: FastAPI and uvicorn are not installed. ModelError: there is no model.
    """
    try:
        from uvicorn import Config, Server

        from .app import make_app
        from .protocol import Punctual
        from .service import Serve
    except ImportError as error:
        raise ClawError(
            _("Serving needs the extra `serve`. Install it: {command}", command=extras.to_type("serve"))
        ) from error

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
        timeout_graceful_shutdown=LINGER_S,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return Announced(config)
