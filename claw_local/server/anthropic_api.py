"""Anthropic's Messages API: /v1/messages and /v1/messages/count_tokens. It must never know how an answer is made.

Source: https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from . import anthropic_events as events
from .anthropic_wire import CountRequest, MessagesRequest, asked
from .api import Api, begun, caller_of, session_of, streamed, whole
from .asking import Asked, Service
from .naming import find


def routes(service: Service) -> APIRouter:
    """The routes over a service."""
    router = APIRouter(prefix="/v1/messages", tags=["Anthropic"])

    @router.post("", response_model=None, summary="Answer a chat")
    async def messages(body: MessagesRequest, request: Request) -> Response:
        """Answers with one message, or, with `stream`, with server-sent events."""
        model = await find(service, body.model)
        user = body.metadata.user_id or "" if body.metadata is not None else ""
        wanted = asked(body, caller_of(request), session_of(request, user))
        if body.stream:
            counted = await service.count(wanted)
            answering = await begun(service.answer(wanted))
            return streamed(events.events(wanted, model.name, counted, answering), "text/event-stream")
        answer = await whole(request, service.answer(wanted))
        return Response() if answer is None else JSONResponse(events.message(wanted, model.name, answer))

    @router.post("/count_tokens", summary="Count the tokens of a prompt")
    async def count_tokens(body: CountRequest, request: Request) -> dict[str, int]:
        """How many tokens the prompt of such a request would have."""
        await find(service, body.model)
        wanted: Asked = asked(body, caller_of(request), session_of(request))
        return {"input_tokens": await service.count(wanted)}

    return router


def _error(error: Any) -> dict[str, Any]:
    return events.error_body(error)


API = Api(prefixes=("/v1/messages",), routes=routes, error=_error, key="x-api-key")
