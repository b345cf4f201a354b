"""The web application: every API's routes, behind the guard. It must never know how an answer is made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

from .. import __version__
from . import anthropic_api, ollama_api, openai_api
from .api import Api, Problem
from .errors import TOO_DEEP, Busy, Internal, Invalid, Missing, NotAllowed, ServeError, TooLarge, WrongType
from .guard import Door, Guard, error_response
from .service import Serve

APIS: tuple[Api, ...] = (openai_api.API, anthropic_api.API, ollama_api.API)
"""Each API, by its module. The first one writes errors of addresses that belong to none."""

MOST_REQUESTS = 512
"""Under way at the same time; more are asked to come again."""
_BY_STATUS = {404: Missing, 405: NotAllowed, 413: TooLarge, 415: WrongType}


def make_app(service: Serve, door: Door, apis: Sequence[Api] = APIS) -> ASGIApp:
    """The whole server as an ASGI application."""
    app = FastAPI(
        title="claw-local",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lambda _: _closing(service),
        redirect_slashes=False,
    )

    @app.get("/healthz", response_model=dict[str, str], tags=["health"], responses={403: {"model": Problem}})
    async def healthz() -> dict[str, str]:
        """Whether it runs."""
        return {"status": "ok"}

    for api in apis:
        app.include_router(api.routes(service))

    @app.exception_handler(ServeError)
    async def served(request: Request, error: ServeError) -> Response:
        return error_response(error, request.url.path, apis)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0]
        return error_response(_invalid(error, kind.strip().lower()), request.url.path, apis)

    @app.exception_handler(RecursionError)
    async def too_deep(request: Request, error: RecursionError) -> Response:
        return error_response(Invalid(TOO_DEEP), request.url.path, apis)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        kind = _BY_STATUS.get(error.status_code, Invalid if error.status_code < 500 else Internal)
        words = {404: f"There is nothing at {request.url.path[:200]!r}.", 405: "That address takes another method."}
        response = error_response(
            kind(words.get(error.status_code, "The request cannot be read.")), request.url.path, apis
        )
        response.headers.update(error.headers or {})
        return response

    app.openapi = lambda: _description(app)  # type: ignore[method-assign]
    return Last(Guard(app, door, service.assistant.store, apis), apis)


class Last:
    """Whatever goes wrong beyond all else is a sentence too: no traceback is ever sent; and too many at once are."""

    def __init__(self, app: ASGIApp, apis: Sequence[Api]) -> None:
        self._app = app
        self._apis = apis
        self._under_way = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        if self._under_way >= MOST_REQUESTS:
            busy = Busy(f"{MOST_REQUESTS} requests are under way, and no more can be. Ask again in a moment.")
            response = error_response(busy, scope["path"], self._apis)
            response.headers["Connection"] = "close"
            return await response(scope, receive, send)
        self._under_way += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._under_way -= 1

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        begun = False

        async def sending(message: Any) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception:
            if not begun:
                error = Internal("Something unexpected went wrong here. The server's own log says what.")
                await error_response(error, scope["path"], self._apis)(scope, receive, send)
            raise


@asynccontextmanager
async def _closing(service: Serve) -> AsyncIterator[None]:
    yield
    await service.close()


def _invalid(error: RequestValidationError, kind: str) -> Invalid:
    """What is wrong with a request. `kind`: what its Content-Type says the body is."""
    if isinstance(error.body, (bytes, str)) and error.body and not kind.endswith("json"):
        # Most often `curl -d` alone, which calls what it sends a form's.
        return Invalid("The body is read as JSON only if the request says so: Content-Type: application/json.")
    # Where a field may be of several kinds, what came is likeliest to be of the kind that goes wrong deepest inside.
    first = max(error.errors(), key=lambda one: len(one["loc"]))
    where = ".".join(part for part in first["loc"][1:] if _is_field(part))
    said = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    return Invalid(f"{where or 'The request'}: {said}."[:500], field=where[:200])


def _is_field(part: Any) -> bool:
    """Whether a step on the way to what is wrong is a field, and no place in a list or name of a type."""
    return isinstance(part, str) and part.isidentifier() and part.islower() and part not in ("str", "int")


def _description(app: FastAPI) -> dict[str, Any]:
    """OpenAPI, without the answers FastAPI adds by itself: what is wrong with a request is 400 here."""
    from fastapi.openapi.utils import get_openapi

    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for path in made["paths"].values():
            for operation in path.values():
                operation.get("responses", {}).pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            made.get("components", {}).get("schemas", {}).pop(name, None)
        app.openapi_schema = made
    return app.openapi_schema
