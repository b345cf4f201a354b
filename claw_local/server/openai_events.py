"""Answers in OpenAI's form: whole, and as server-sent events.

API: https://platform.openai.com/docs/api-reference/chat (the chat completion object, and its chunks).
It must never know how an answer is made.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from .api import Whole, aclose
from .asking import Answering, Asked, Ended, Piece, TokenLogprob
from .errors import Internal, ServeError, Unavailable

KINDS = {
    "invalid": "invalid_request_error",
    "too_long": "invalid_request_error",
    "no_key": "authentication_error",
    "forbidden": "permission_error",
    "missing": "not_found_error",
    "busy": "rate_limit_error",
}
CODES = {"too_long": "context_length_exceeded", "no_key": "invalid_api_key", "missing": "not_found"}


def error(problem: ServeError) -> dict[str, Any]:
    """An error as OpenAI writes it."""
    return {
        "error": {
            "message": problem.message,
            "type": KINDS.get(problem.kind, "server_error" if problem.status >= 500 else "invalid_request_error"),
            "param": problem.field or None,
            "code": CODES.get(problem.kind, problem.kind),
        }
    }


def new_id(kind: str, message_id: int) -> str:
    """An answer's id. Of one that is kept it begins with the message's number, for feedback."""
    return f"{kind}-{message_id}-{secrets.token_hex(6)}"


def usage(ended: Ended) -> dict[str, Any]:
    return {
        "prompt_tokens": ended.prompt_tokens,
        "completion_tokens": ended.completion_tokens,
        "total_tokens": ended.prompt_tokens + ended.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": ended.cached_tokens},
    }


def finish(ended: Ended) -> str:
    """Raises Unavailable: it was broken off here."""
    if ended.finish == "cancelled":
        raise Unavailable("The answer was broken off, because the server is closing. Ask again once it runs.")
    return ended.finish


def chat(whole: Whole, asked: Asked) -> dict[str, Any]:
    """A chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": whole.text if whole.text or not whole.calls else None}
    message["refusal"] = None
    if whole.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in whole.calls
        ]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None if asked.logprobs is None else {"content": _chat_logprobs(whole.logprobs), "refusal": None},
        "finish_reason": finish(whole.ended),
    }
    return _object("chat.completion", new_id("chatcmpl", whole.ended.message_id), whole.ended.model) | {
        "choices": [choice],
        "usage": usage(whole.ended),
    }


def text(wholes: Sequence[Whole], asked: Sequence[Asked], echoed: Sequence[str]) -> dict[str, Any]:
    """A completion of one prompt or several."""
    choices = [
        {
            "index": index,
            "text": before + whole.text,
            "logprobs": None if one.logprobs is None else _text_logprobs(whole.logprobs, one.logprobs),
            "finish_reason": finish(whole.ended),
        }
        for index, (whole, one, before) in enumerate(zip(wholes, asked, echoed, strict=True))
    ]
    counts = [usage(whole.ended) for whole in wholes]
    total = {
        name: sum(count[name] for count in counts) for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    }
    return _object("text_completion", new_id("cmpl", 0), wholes[0].ended.model) | {"choices": choices, "usage": total}


async def chat_events(answering: Answering, asked: Asked, *, counts: bool) -> AsyncIterator[str]:
    """A chat completion's chunks."""
    head = _object("chat.completion.chunk", "", "")

    def chunk(delta: dict[str, Any], *, logprobs: Any = None, reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return _event(head | {"choices": [choice]} | ({"usage": None} if counts else {}))

    try:
        async for part in answering:
            if isinstance(part, Ended):
                yield chunk({}, reason=finish(part))
                if counts:
                    yield _event(head | {"choices": [], "usage": usage(part)})
            elif part.began is not None:
                head |= {"id": new_id("chatcmpl", part.began.message_id), "model": part.began.model}
                yield chunk({"role": "assistant", "content": "", "refusal": None})
            elif part.call is not None:
                function = {"name": part.call.name, "arguments": part.call.arguments}
                call = {"index": part.call.index, "id": part.call.id, "type": "function", "function": function}
                yield chunk({"tool_calls": [call]})
            else:
                noted = {"content": _chat_logprobs(part.logprobs), "refusal": None} if part.logprobs else None
                yield chunk({"content": part.text}, logprobs=noted)
        yield "data: [DONE]\n\n"
    except Exception as problem:
        yield _broken(problem)
    finally:
        await aclose(answering)


async def text_events(answering: Answering, asked: Asked, echoed: str, *, counts: bool) -> AsyncIterator[str]:
    """A completion's chunks."""
    head = _object("text_completion", new_id("cmpl", 0), "")

    def chunk(words: str, logprobs: Sequence[TokenLogprob] = (), reason: str | None = None) -> str:
        noted = _text_logprobs(logprobs, asked.logprobs or 0) if logprobs else None
        choice = {"index": 0, "text": words, "logprobs": noted, "finish_reason": reason}
        return _event(head | {"choices": [choice]})

    try:
        async for part in answering:
            if isinstance(part, Ended):
                yield chunk("", reason=finish(part))
                if counts:
                    yield _event(head | {"choices": [], "usage": usage(part)})
            elif isinstance(part, Piece) and part.began is not None:
                head |= {"model": part.began.model}
                if echoed:
                    yield chunk(echoed)
            else:
                yield chunk(part.text, part.logprobs)
        yield "data: [DONE]\n\n"
    except Exception as problem:
        yield _broken(problem)
    finally:
        await aclose(answering)


def _object(kind: str, identity: str, model: str) -> dict[str, Any]:
    return {"id": identity, "object": kind, "created": int(time.time()), "model": model}


def _event(data: Any) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _broken(problem: Exception) -> str:
    """An answer that broke off says so; what follows is the end of the stream, without its usual mark."""
    if not isinstance(problem, ServeError):
        problem = Internal("The answer broke off here. The server's own log says why.")
    return _event(error(problem))


def _chat_logprobs(logprobs: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
    return [
        {
            "token": one.text,
            "logprob": one.logprob,
            "bytes": list(one.raw),
            "top_logprobs": [
                {"token": token, "logprob": value, "bytes": list(token.encode("utf-8"))} for token, value in one.top
            ],
        }
        for one in logprobs
    ]


def _text_logprobs(logprobs: Sequence[TokenLogprob], most: int) -> dict[str, Any]:
    offsets, place = [], 0
    for one in logprobs:
        offsets.append(place)
        place += len(one.text)
    return {
        "tokens": [one.text for one in logprobs],
        "token_logprobs": [one.logprob for one in logprobs],
        "top_logprobs": [dict(one.top) for one in logprobs] if most else None,
        "text_offset": offsets,
    }
