"""OpenAI's API: chat completions, completions, embeddings, models; and feedback, which is ours.

It must never know how an answer is made.
"""

from __future__ import annotations

import base64
import json
import struct
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from . import openai_events as events
from .api import PROBLEMS, Api, Whole, begun, caller_of, streamed, while_there, whole
from .asking import Offered
from .errors import Missing
from .openai_wire import ChatRequest, CompletionRequest, EmbeddingRequest, FeedbackRequest
from .service import Serve

STREAM = "text/event-stream"
_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer; with `stream` in events.", "content": {"application/json": {}, STREAM: {}}}
}


class Plain(JSONResponse):
    """JSON in ASCII alone: whatever a model or a client writes can be sent."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


def routes(service: Serve) -> APIRouter:
    """The routes over a service."""
    router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["openai"])

    @router.post("/chat/completions", response_model=None, responses=_STREAMED)
    async def chat(body: ChatRequest, request: Request) -> Response:
        """Answer a chat."""
        asked = body.asked(request)
        answering = service.answer(asked)
        if body.stream:
            return streamed(events.chat_events(await begun(request, answering), asked, counts=body.counts), STREAM)
        found = await whole(request, answering)
        return _gone() if found is None else Plain(events.chat(found, asked))

    @router.post("/completions", response_model=None, responses=_STREAMED)
    async def complete(body: CompletionRequest, request: Request) -> Response:
        """Go on with a text as it is."""
        asked = body.asked(request)
        echoed = [
            "" if not body.echo else one.prompt if one.prompt is not None else await service.detokenize(one.prompt_ids)
            for one in asked
        ]
        if body.stream:
            answering = await begun(request, service.answer(asked[0]))
            return streamed(events.text_events(answering, asked[0], echoed[0], counts=body.counts), STREAM)
        wholes: list[Whole] = []
        for one in asked:
            found = await whole(request, service.answer(one))
            if found is None:
                return _gone()
            wholes.append(found)
        return Plain(events.text(wholes, asked, echoed))

    @router.post("/embeddings", response_model=dict[str, Any])
    async def embed(body: EmbeddingRequest, request: Request) -> Response:
        """Vectors of texts: the mean of the model's last states, of length 1."""
        found = await while_there(request, service.embed(caller_of(request), body.model, body.texts))
        data = [
            {"object": "embedding", "index": index, "embedding": _vector(vector, body.encoding_format == "base64")}
            for index, vector in enumerate(found.vectors)
        ]
        usage = {"prompt_tokens": found.tokens, "total_tokens": found.tokens}
        return Plain({"object": "list", "data": data, "model": found.model, "usage": usage})

    @router.get("/models", response_model=dict[str, Any])
    async def models() -> Response:
        """What can be asked for: what is in use, the base, and each adapter."""
        data = [_model(one) for one in await service.models()]
        ends = {"has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
        return Plain({"object": "list", "data": data} | ends)

    @router.get("/models/{name:path}", response_model=dict[str, Any])
    async def model(name: str) -> Response:
        """One of them."""
        for one in await service.models():
            if one.name.casefold() == name.casefold():
                return Plain(_model(one))
        raise Missing(f"There is no model {name[:80]!r} here. /v1/models lists those there are.")

    @router.post("/feedback", response_model=dict[str, Any])
    async def feedback(body: FeedbackRequest, request: Request) -> Response:
        """Say outright what an answer was worth, or how it should have been."""
        score = await service.feedback(caller_of(request), body.message_id, body.score, hint=body.hint, edit=body.edit)
        return Plain({"object": "feedback", "id": body.id, "score": score})

    return router


def _model(one: Offered) -> dict[str, Any]:
    """As OpenAI's clients read it, and Anthropic's, which ask at the same address."""
    found = {"id": one.name, "object": "model", "created": one.created, "owned_by": "claw-local"}
    made = datetime.fromtimestamp(one.created, UTC).isoformat().replace("+00:00", "Z")
    found |= {"type": "model", "display_name": one.name, "created_at": made}
    return found | ({"max_model_len": one.context} if one.context else {})


def _vector(vector: tuple[float, ...], packed: bool) -> list[float] | str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if packed else list(vector)


def _gone() -> Response:
    """To a client that went away: nobody reads it."""
    return Response(status_code=499)


API = Api(prefixes=("/v1", "/"), routes=routes, error=events.error)
