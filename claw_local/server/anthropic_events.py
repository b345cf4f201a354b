"""An answer as Anthropic's clients read it: one message, or the events of its stream.

It must never know about HTTP. Source: https://docs.anthropic.com/en/api/messages-streaming.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

from .anthropic_wire import NoThreads
from .api import Whole, aclose
from .asking import Answering, Asked, Began, CallPiece, Ended
from .errors import Internal, ServeError, Unavailable, with_field

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
"""HTTP status -> what Anthropic calls such an error; other 4xx are wrong requests, other 5xx are `api_error`."""


def error_body(error: ServeError) -> dict[str, Any]:
    """An error as the body of an answer, and as the event `error`."""
    usual = "api_error" if error.status >= 500 else "invalid_request_error"
    said: dict[str, Any] = {"type": KINDS.get(error.status, usual), "message": with_field(error)}
    if isinstance(error, NoThreads):
        said["details"] = error.details
    return {"type": "error", "error": said, "request_id": f"req_{secrets.token_hex(12)}"}


def new_id(message_id: int) -> str:
    """An answer's id. Of one that is kept it begins with the message's number, for feedback."""
    return f"msg_{message_id}-{secrets.token_hex(6)}"


def stop_reason(asked: Asked, ended: Ended) -> tuple[str, str | None]:
    """(stop_reason, stop_sequence). Raises Unavailable: the answer was broken off here."""
    if ended.finish == "cancelled":
        raise Unavailable("The answer was broken off, because the server is closing. Ask again once it runs.")
    if ended.stopped_by:
        return "stop_sequence", ended.stopped_by
    if ended.finish == "length":
        most = asked.drawn.max_tokens
        full = most is not None and ended.completion_tokens < most
        return ("model_context_window_exceeded" if full else "max_tokens"), None
    return ("tool_use" if ended.finish == "tool_calls" else "end_turn"), None


def usage(ended: Ended) -> dict[str, int]:
    """Tokens of prompt and answer. What is kept of a prompt costs nothing here and is not told apart."""
    return {
        "input_tokens": ended.prompt_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": ended.completion_tokens,
    }


def message(asked: Asked, model: str, whole: Whole) -> dict[str, Any]:
    """A whole answer. Raises Unavailable: it was broken off here."""
    reason, sequence = stop_reason(asked, whole.ended)
    content: list[dict[str, Any]] = []
    if whole.text:
        content.append({"type": "text", "text": whole.text})
    for call in whole.calls:
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)})
    return {
        "id": new_id(whole.ended.message_id),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": sequence,
        "usage": usage(whole.ended),
    }


async def events(asked: Asked, model: str, answering: Answering) -> AsyncIterator[str]:
    """The stream: message_start; for each block its start, deltas and stop; message_delta; message_stop.

    What fails on the way is the event `error`, and ends it.
    """
    blocks = _Blocks()
    try:
        async for part in answering:
            made: list[str] = []
            if isinstance(part, Ended):
                reason, sequence = stop_reason(asked, part)
                made = blocks.close()
                delta = {"stop_reason": reason, "stop_sequence": sequence}
                made += [event("message_delta", delta=delta, usage=usage(part)), event("message_stop")]
            else:
                if part.began is not None:
                    made += [_start(model, part.began), event("ping")]
                if part.text:
                    made += blocks.say(part.text)
                if part.call is not None:
                    made += blocks.call(part.call)
            for text in made:
                yield text
    except Exception as problem:
        yield _broken(problem)
    finally:
        await aclose(answering)


def _start(model: str, began: Began) -> str:
    started: dict[str, Any] = {
        "id": new_id(began.message_id),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage(Ended("stop", prompt_tokens=began.prompt_tokens)),
    }
    return event("message_start", message=started)


def _broken(problem: Exception) -> str:
    if not isinstance(problem, ServeError):
        problem = Internal("The answer broke off here. The server's own log says why.")
    body = error_body(problem)
    return event("error", error=body["error"], request_id=body["request_id"])


class _Blocks:
    """The content blocks of one stream: one is open at a time."""

    def __init__(self) -> None:
        self._index = -1
        self._open = ""

    def say(self, text: str) -> list[str]:
        made = [] if self._open == "text" else self._begin("text", {"type": "text", "text": ""})
        return [*made, self._delta({"type": "text_delta", "text": text})]

    def call(self, piece: CallPiece) -> list[str]:
        name = f"call {piece.index}"
        made: list[str] = []
        if self._open != name:
            made = self._begin(name, {"type": "tool_use", "id": piece.id, "name": piece.name, "input": {}})
        if piece.arguments:
            made.append(self._delta({"type": "input_json_delta", "partial_json": piece.arguments}))
        return made

    def close(self) -> list[str]:
        if not self._open:
            return []
        self._open = ""
        return [event("content_block_stop", index=self._index)]

    def _begin(self, name: str, block: dict[str, Any]) -> list[str]:
        made = self.close()
        self._index += 1
        self._open = name
        return [*made, event("content_block_start", index=self._index, content_block=block)]

    def _delta(self, delta: dict[str, Any]) -> str:
        return event("content_block_delta", index=self._index, delta=delta)


def event(kind: str, **fields: Any) -> str:
    """One server-sent event."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def _input(arguments: str) -> dict[str, Any]:
    """A call's arguments; {} where the answer was cut before they were whole."""
    try:
        found = json.loads(arguments)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
