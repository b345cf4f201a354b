"""Anthropic's Messages API: /v1/messages and /v1/messages/count_tokens. It must never know how an answer is made.

Source: https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ..talking.text import clean
from . import anthropic_events as events
from .anthropic_wire import CountRequest, MessagesRequest, asked
from .api import PROBLEMS, Api, begun, caller_of, session_of, streamed, whole
from .asking import Asked, Service
from .naming import find
from .openai_api import STREAM, Plain

_STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer; with `stream` in events.", "content": {"application/json": {}, STREAM: {}}}
}


def routes(service: Service) -> APIRouter:
    """The routes over a service."""
    router = APIRouter(prefix="/v1/messages", tags=["anthropic"], responses=PROBLEMS)

    @router.post("", response_model=None, responses=_STREAMED)
    async def messages(body: MessagesRequest, request: Request) -> Response:
        """Answer a chat: with one message or, with `stream`, with server-sent events."""
        model = await find(service, body.model)
        user = clean(body.metadata.user_id or "") if body.metadata is not None else ""
        wanted = asked(body, caller_of(request), session_of(request, user))
        if body.stream:
            pieces = await begun(request, service.answer(wanted))
            return streamed(events.events(wanted, model.name, pieces), STREAM)
        answer = await whole(request, service.answer(wanted))
        return Response(status_code=499) if answer is None else Plain(events.message(wanted, model.name, answer))

    @router.post("/count_tokens")
    async def count_tokens(body: CountRequest, request: Request) -> dict[str, int]:
        """Count the tokens that the prompt of such a request would have."""
        await find(service, body.model)
        wanted: Asked = asked(body, caller_of(request), session_of(request))
        return {"input_tokens": await service.count(wanted)}

    return router


API = Api(prefixes=("/v1/messages",), routes=routes, error=events.error_body, key="x-api-key")
