"""An answer as Ollama's clients read it: one object, or a line of JSON for each piece.

It must never know about HTTP. Source: https://docs.ollama.com/api.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from .api import Whole, aclose
from .asking import Answering, CallPiece, Ended, TokenLogprob, ToolCall
from .errors import Internal, Missing, ServeError, Unavailable, with_field

Calls = Sequence[tuple[int, ToolCall]]
"""Calls with their places among all calls of an answer."""

Said = Callable[[str, Calls], dict[str, Any]]
"""Text and calls as the part of an object that holds them: `message` in a chat, `response` otherwise."""


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def error_body(error: ServeError) -> dict[str, Any]:
    return {"error": error.message if isinstance(error, Missing) else with_field(error)}


def in_chat(text: str, calls: Calls) -> dict[str, Any]:
    """What /api/chat says."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [_call(call, index) for index, call in calls]
    return {"message": message}


def in_text(text: str, calls: Calls) -> dict[str, Any]:
    """What /api/generate says; it has no tools."""
    return {"response": text}


def empty(model: str, said: Said, reason: str) -> dict[str, Any]:
    """The answer to a request that asks nothing: the model is loaded, or may go."""
    return {"model": model, "created_at": now(), **said("", ()), "done": True, "done_reason": reason}


def one(model: str, whole: Whole, said: Said, *, context: bool) -> dict[str, Any]:
    """A whole answer. Raises Unavailable: it was broken off here."""
    text, calls = _sound(whole)
    logprobs = {"logprobs": _logprobs(whole.logprobs)} if whole.logprobs else {}
    return {
        "model": model,
        "created_at": now(),
        **said(text, list(enumerate(calls))),
        **logprobs,
        **_end(whole.ended, context),
    }


async def lines(model: str, answering: Answering, said: Said, *, context: bool) -> AsyncIterator[str]:
    """The answer in lines, the last one with counts and times. What fails on the way is a last line with `error`."""
    calls = _Calls()
    try:
        async for part in answering:
            made: list[dict[str, Any]] = []
            if isinstance(part, Ended):
                made = [_alone(said, index, call) for index, call in calls.rest()]
                made.append({**said("", ()), **_end(part, context)})
            else:
                if part.text or part.logprobs:
                    logprobs = {"logprobs": _logprobs(part.logprobs)} if part.logprobs else {}
                    made.append({**said(part.text, ()), **logprobs})
                if part.call is not None:
                    made += [_alone(said, index, call) for index, call in calls.add(part.call)]
            for fields in made:
                yield _line({"model": model, "created_at": now(), "done": False} | fields)
    except Exception as problem:
        if not isinstance(problem, ServeError):
            problem = Internal("The answer broke off here. The server's own log says why.")
        yield _line(error_body(problem))
    finally:
        await aclose(answering)


class _Calls:
    """Ollama's clients read a call whole: pieces wait until the next call, or the end."""

    def __init__(self) -> None:
        self._parts: dict[int, list[CallPiece]] = {}

    def add(self, piece: CallPiece) -> Calls:
        """Calls that are whole now."""
        calls = [self._take(index) for index in list(self._parts) if index != piece.index]
        self._parts.setdefault(piece.index, []).append(piece)
        return calls

    def rest(self) -> Calls:
        return [self._take(index) for index in list(self._parts)]

    def _take(self, index: int) -> tuple[int, ToolCall]:
        parts = self._parts.pop(index)
        return index, ToolCall(
            "".join(part.id for part in parts),
            "".join(part.name for part in parts),
            "".join(part.arguments for part in parts),
        )


def _alone(said: Said, index: int, call: ToolCall) -> dict[str, Any]:
    return said(call.arguments, ()) if _arguments(call) is None else said("", [(index, call)])


def _sound(whole: Whole) -> tuple[str, list[ToolCall]]:
    """Text and calls; of a call that was cut before its arguments were whole, what there is becomes text."""
    calls = [call for call in whole.calls if _arguments(call) is not None]
    cut = [call.arguments for call in whole.calls if _arguments(call) is None]
    return whole.text + "".join(cut), calls


def _call(call: ToolCall, index: int) -> dict[str, Any]:
    return {"id": call.id, "function": {"index": index, "name": call.name, "arguments": _arguments(call) or {}}}


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        found = json.loads(call.arguments or "{}")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _end(ended: Ended, context: bool) -> dict[str, Any]:
    """How it ended, with counts, and times in nanoseconds."""
    if ended.finish == "cancelled":
        raise Unavailable("The answer was broken off, because the server is closing. Ask again once it runs.")
    kept = {"context": [*ended.prompt_ids, *ended.response_ids]} if context and ended.prompt_ids else {}
    writing_s = max(ended.total_s - ended.load_s - ended.prompt_s, 1e-6)
    return {
        "done": True,
        "done_reason": "length" if ended.finish == "length" else "stop",
        **kept,
        "total_duration": _ns(ended.total_s),
        "load_duration": _ns(ended.load_s),
        "prompt_eval_count": ended.prompt_tokens,
        "prompt_eval_duration": _ns(ended.prompt_s),
        "eval_count": ended.completion_tokens,
        "eval_duration": _ns(writing_s),
    }


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _logprobs(tokens: Sequence[TokenLogprob]) -> list[dict[str, Any]]:
    return [
        {
            "token": token.text,
            "logprob": token.logprob,
            "bytes": list(token.raw),
            "top_logprobs": [{"token": text, "logprob": logprob} for text, logprob in token.top],
        }
        for token in tokens
    ]


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields) + "\n"
