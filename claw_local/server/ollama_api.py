"""Ollama's API: answers, embeddings, and what models there are. It must never know how an answer is made.

What only a store of models can do (pull, create, push, copy, delete) is refused in one sentence.
Source: https://docs.ollama.com/api.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import PlainTextResponse, Response

from ..talking.text import clean
from . import ollama_lines as lines
from . import ollama_models as models
from . import ollama_wire as wire
from .api import PROBLEMS, Api, begun, caller_of, session_of, streamed, while_there, whole
from .asking import Asked, Offered, Service
from .errors import Missing, NotMade
from .naming import find, loaded
from .ollama_context import go_on
from .openai_api import Plain

VERSION = "0.12.0"
"""Version of Ollama whose API this follows; its clients look at it to know what they may ask."""

NDJSON = "application/x-ndjson"
_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer; in lines, or with `stream` false whole.",
        "content": {"application/json": {}, NDJSON: {}},
    }
}


class _JsonRoute(APIRoute):
    """Reads a body as JSON whatever its Content-Type says, as Ollama does: its documentation sends it as a form's."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            kept = [(name, value) for name, value in request.scope["headers"] if name != b"content-type"]
            scope = {**request.scope, "headers": [*kept, (b"content-type", b"application/json")]}
            return await handler(Request(scope, request.receive))

        return handle


def routes(service: Service) -> APIRouter:
    """The routes over a service."""
    router = APIRouter(prefix="/api", tags=["ollama"], responses=PROBLEMS, route_class=_JsonRoute)
    _answers(router, service)
    _vectors(router, service)
    _models(router, service)
    _refusals(router)
    with_home = APIRouter()
    with_home.include_router(router)
    with_home.add_api_route("/", _home, methods=["GET"], response_class=PlainTextResponse, tags=["ollama"])
    with_home.add_api_route("/", _home, methods=["HEAD"], include_in_schema=False)
    return with_home


async def _home() -> Response:
    """Says that it runs: Ollama's clients look here first."""
    return PlainTextResponse("claw-local is running")


def _answers(router: APIRouter, service: Service) -> None:
    async def answer(
        request: Request, body: wire.AnswerRequest, asked: Asked, said: lines.Said, *, context: bool = False
    ) -> Response:
        if body.stream is not False:
            pieces = await begun(request, service.answer(asked))
            return streamed(lines.lines(body.asked_for, pieces, said, context=context), NDJSON)
        gathered = await whole(request, service.answer(asked))
        if gathered is None:
            return Response(status_code=499)
        return Plain(lines.one(body.asked_for, gathered, said, context=context))

    async def nothing(request: Request, body: wire.AnswerRequest, model: Offered, said: lines.Said) -> Response:
        """What asks nothing only loads the model."""
        if not body.unloads:
            await loaded(service, caller_of(request), model.name)
        return Plain(lines.empty(body.asked_for, said, "unload" if body.unloads else "load"))

    @router.post("/chat", response_model=None, responses=_STREAMED)
    async def chat(body: wire.ChatRequest, request: Request) -> Response:
        """Answer a chat: in lines of JSON or, with `stream` false, in one object."""
        model = await _named(service, body)
        if not body.messages:
            return await nothing(request, body, model, lines.in_chat)
        asked = wire.chat(body, model.name, caller_of(request), session_of(request))
        return await answer(request, body, asked, lines.in_chat)

    @router.post("/generate", response_model=None, responses=_STREAMED)
    async def generate(body: wire.GenerateRequest, request: Request) -> Response:
        """Answer a prompt, as /api/chat does. `context` goes on from an earlier answer."""
        model = await _named(service, body)
        if not body.prompt:
            return await nothing(request, body, model, lines.in_text)
        asked = wire.generate(body, model.name, caller_of(request), session_of(request))
        if body.context and not body.raw:
            in_memory = await loaded(service, caller_of(request), model.name)
            asked = await go_on(service, in_memory, asked, body.context)
        return await answer(request, body, asked, lines.in_text, context=not body.raw)


def _vectors(router: APIRouter, service: Service) -> None:
    @router.post("/embed", response_model=dict[str, Any])
    async def embed(body: wire.EmbedRequest, request: Request) -> Response:
        """Vectors of texts, each of length 1."""
        model = await _named(service, body)
        texts = [clean(text) for text in ([body.input] if isinstance(body.input, str) else body.input)]
        started = time.perf_counter()
        found = await while_there(request, service.embed(caller_of(request), model.name, texts)) if texts else None
        return Plain(
            {
                "model": body.asked_for,
                "embeddings": found.vectors if found is not None else [],
                "total_duration": round((time.perf_counter() - started) * 1e9),
                "load_duration": 0,
                "prompt_eval_count": found.tokens if found is not None else 0,
            }
        )

    @router.post("/embeddings", response_model=dict[str, Any])
    async def embeddings(body: wire.EmbeddingsRequest, request: Request) -> Response:
        """The vector of one text; /api/embed takes several."""
        model = await _named(service, body)
        if not body.prompt:
            return Plain({"embedding": []})
        found = await while_there(request, service.embed(caller_of(request), model.name, [clean(body.prompt)]))
        return Plain({"embedding": found.vectors[0]})


def _models(router: APIRouter, service: Service) -> None:
    @router.get("/tags", response_model=dict[str, Any])
    async def tags() -> Response:
        """What can be asked for: what is in use, the base, and each adapter."""
        return Plain(models.tags(await service.models()))

    @router.get("/ps", response_model=dict[str, Any])
    async def running() -> Response:
        """What is in use. It stays in memory."""
        return Plain(models.running(await service.models()))

    @router.post("/show", response_model=dict[str, Any])
    async def show(body: wire.ModelRequest, request: Request) -> Response:
        """What the model's file says of itself."""
        model = await _named(service, body)
        return Plain(models.shown(await loaded(service, caller_of(request), model.name), await service.models()))

    @router.get("/version", response_model=dict[str, str])
    async def version() -> Response:
        """The version of Ollama whose API this follows."""
        return Plain({"version": VERSION})

    @router.post("/pull", response_model=None, responses=_STREAMED)
    async def pull(body: wire.PullRequest) -> Response:
        """Look whether a model is here: then it needs no pulling. No other one is fetched."""
        try:
            await _named(service, body)
        except Missing as missing:
            command = "claw-local models pull OWNER/NAME"
            raise Missing(f"{missing.message} {_REFUSED.format(what='fetches none', instead=command)}") from None
        if body.stream is False:
            return Plain({"status": "success"})
        return PlainTextResponse('{"status": "success"}\n', media_type=NDJSON)


_REFUSED = "claw-local {what} through this API. Use the command: {instead}"


def _refusals(router: APIRouter) -> None:
    """What is Ollama's, and not to be had here: it is answered, and stands in no description."""

    def refuse(method: str, path: str, what: str, instead: str) -> None:
        async def refused() -> None:
            raise NotMade(_REFUSED.format(what=what, instead=instead))

        router.add_api_route(path, refused, methods=[method], include_in_schema=False)

    refuse("POST", "/create", "makes no models", "claw-local models add FILE")
    refuse("POST", "/push", "sends no models anywhere", "claw-local adapters export")
    refuse("POST", "/copy", "copies no models", "claw-local adapters rename")
    refuse("DELETE", "/delete", "deletes no models", "claw-local models remove")
    refuse("POST", "/blobs/{digest}", "takes no files", "claw-local models add FILE")


async def _named(service: Service, body: wire.ModelRequest) -> Offered:
    return await find(service, body.asked_for)


API = Api(prefixes=("/api",), routes=routes, error=lines.error_body)
