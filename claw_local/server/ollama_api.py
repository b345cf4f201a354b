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
from starlette.responses import JSONResponse, PlainTextResponse, Response

from . import ollama_lines as lines
from . import ollama_models as models
from . import ollama_wire as wire
from .api import Api, begun, caller_of, session_of, streamed, whole
from .asking import Asked, Offered, Service
from .errors import Invalid, NotMade
from .naming import find, loaded
from .ollama_context import go_on

VERSION = "0.12.0"
"""Version of Ollama whose API this follows; its clients look at it to know what they may ask."""

NDJSON = "application/x-ndjson"


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
    router = APIRouter(prefix="/api", tags=["Ollama"], route_class=_JsonRoute)

    async def answer(request: Request, body: wire.AnswerRequest, asked: Asked, said: lines.Said) -> Response:
        context = said is lines.in_text and asked.shape == "" and not getattr(body, "raw", False)
        if body.stream is not False:
            pieces = await begun(service.answer(asked))
            return streamed(lines.lines(body.asked_for, pieces, said, context=context), NDJSON)
        gathered = await whole(request, service.answer(asked))
        if gathered is None:
            return Response()
        return JSONResponse(lines.one(body.asked_for, gathered, said, context=context))

    async def nothing(body: wire.AnswerRequest, asked: Asked, said: lines.Said) -> Response:
        """What asks nothing only loads the model."""
        if not body.unloads:
            await service.count(asked)
        return JSONResponse(lines.empty(body.asked_for, said, "unload" if body.unloads else "load"))

    @router.post("/chat", response_model=None, summary="Answer a chat")
    async def chat(body: wire.ChatRequest, request: Request) -> Response:
        """Answers in lines of JSON, or, with `stream` false, in one object."""
        model = await _named(service, body)
        if not body.messages:
            return await nothing(body, Asked(caller_of(request), prompt=" ", model=model.name), lines.in_chat)
        asked = wire.chat(body, model.name, caller_of(request), session_of(request))
        return await answer(request, body, asked, lines.in_chat)

    @router.post("/generate", response_model=None, summary="Answer a prompt")
    async def generate(body: wire.GenerateRequest, request: Request) -> Response:
        """Answers in lines of JSON, or, with `stream` false, in one object. `context` goes on from an earlier one."""
        model = await _named(service, body)
        if not body.prompt:
            return await nothing(body, Asked(caller_of(request), prompt=" ", model=model.name), lines.in_text)
        asked = wire.generate(body, model.name, caller_of(request), session_of(request))
        if body.context and not body.raw:
            whole_model = await loaded(service, caller_of(request), model.name)
            asked = await go_on(service, whole_model, asked, body.context)
        return await answer(request, body, asked, lines.in_text)

    @router.post("/embed", summary="Embed texts")
    async def embed(body: wire.EmbedRequest, request: Request) -> dict[str, Any]:
        """One vector of length 1 for each text."""
        model = await _named(service, body)
        texts = [body.input] if isinstance(body.input, str) else body.input
        started = time.perf_counter()
        found = await service.embed(caller_of(request), model.name, texts) if texts else None
        return {
            "model": body.asked_for,
            "embeddings": found.vectors if found is not None else [],
            "total_duration": round((time.perf_counter() - started) * 1e9),
            "load_duration": 0,
            "prompt_eval_count": found.tokens if found is not None else 0,
        }

    @router.post("/embeddings", summary="Embed a text")
    async def embeddings(body: wire.EmbeddingsRequest, request: Request) -> dict[str, Any]:
        """The vector of one text; /api/embed takes several."""
        model = await _named(service, body)
        if not body.prompt:
            return {"embedding": []}
        found = await service.embed(caller_of(request), model.name, [body.prompt])
        return {"embedding": found.vectors[0]}

    @router.get("/tags", summary="List models")
    async def tags() -> dict[str, Any]:
        """The base and each adapter that can answer."""
        return models.tags(await service.models())

    @router.get("/ps", summary="List models in use")
    async def running() -> dict[str, Any]:
        """What answers where no model is named. It stays in memory."""
        return models.running(await service.models())

    @router.post("/show", summary="Describe a model")
    async def show(body: wire.ModelRequest, request: Request) -> dict[str, Any]:
        """What the model's file says of itself."""
        model = await _named(service, body)
        return models.shown(await loaded(service, caller_of(request), model.name), await service.models())

    @router.get("/version", summary="Version of the API")
    async def version() -> dict[str, str]:
        """The version of Ollama whose API this follows."""
        return {"version": VERSION}

    @router.post("/pull", response_model=None, summary="Look whether a model is here")
    async def pull(body: wire.AnswerRequest) -> Response:
        """A model that is here needs no pulling; no other one is fetched."""
        if body.asked_for not in [model.name for model in await service.models()]:
            raise NotMade(_REFUSED.format(what="fetches no models", instead="claw-local models pull OWNER/NAME"))
        if body.stream is False:
            return JSONResponse({"status": "success"})
        return PlainTextResponse('{"status": "success"}\n', media_type=NDJSON)

    _refusals(router)
    return router


_REFUSED = "claw-local {what} through this API. Use the command: {instead}"


def _refusals(router: APIRouter) -> None:
    """What is Ollama's, and not to be had here."""

    def refuse(method: str, path: str, what: str, instead: str) -> None:
        async def refused() -> None:
            raise NotMade(_REFUSED.format(what=what, instead=instead))

        router.add_api_route(path, refused, methods=[method], summary=f"Refused: {what}", status_code=501)

    refuse("POST", "/create", "makes no models", "claw-local models add FILE")
    refuse("POST", "/push", "sends no models anywhere", "claw-local adapters export")
    refuse("POST", "/copy", "copies no models", "claw-local adapters rename")
    refuse("DELETE", "/delete", "deletes no models", "claw-local models remove")
    refuse("POST", "/blobs/{digest}", "takes no files", "claw-local models add FILE")


async def _named(service: Service, body: wire.ModelRequest) -> Offered:
    if not body.asked_for:
        raise Invalid("A model has to be named.", field="model")
    return await find(service, body.asked_for)


API = Api(prefixes=("/api",), routes=routes, error=lines.error_body)
