"""One API: its addresses, its routes, and how it writes an error. It must never know how an answer is made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from .asking import Answering, Began, Caller, CallPiece, Ended, Piece, Session, TokenLogprob, ToolCall, Turn
from .errors import Gone, Invalid, ServeError

Result = TypeVar("Result")


@dataclass(frozen=True)
class Api:
    """What `app.py` mounts. An API module holds one, by the name `API`.

    Attributes:
        prefixes: its addresses begin with these; the longest that fits decides how an error is written.
        routes: the routes over a service.
        error: an error as the body of an answer.
        key: how a key is shown in this API, beside `Authorization: Bearer KEY`: the name of a header, "" for none.
    """

    prefixes: tuple[str, ...]
    routes: Callable[[Any], APIRouter]
    error: Callable[[ServeError], dict[str, Any]]
    key: str = ""


class Problem(BaseModel):
    """An error, in whichever form the API writes it."""

    error: Any


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in {
        400: "The request cannot be answered as it is.",
        401: "There is no key, or a wrong one.",
        403: "It comes from a page or by a name that is not allowed.",
        404: "There is no such model or message.",
        408: "It took longer than it may.",
        413: "It is larger than it may be.",
        429: "No place is free; Retry-After says when to try again.",
        500: "It failed here.",
        503: "The model cannot be loaded.",
    }.items()
}
"""What every route that answers may say, for its description."""


def caller_of(request: Request) -> Caller:
    """Who asks, as the guard found out."""
    caller: Caller = request.state.caller
    return caller


def session_of(request: Request, user: str = "") -> Session:
    """What the headers say of the session. Raises Invalid."""
    turn = request.headers.get("x-turn-type", "").strip().lower()
    if turn not in ("", "main", "side"):
        raise Invalid("X-Turn-Type is main or side.", field="X-Turn-Type")
    done = request.headers.get("x-session-done", "").strip().lower()
    kind: Turn = "main" if turn == "main" else "side" if turn == "side" else ""
    return Session(
        id=request.headers.get("x-session-id", "").strip(), turn=kind, done=done in ("1", "true", "yes"), user=user
    )


@dataclass
class Whole:
    """An answer that came to its end."""

    text: str
    calls: list[ToolCall]
    logprobs: list[TokenLogprob]
    ended: Ended


@dataclass
class Gathering:
    """Puts pieces together to the whole."""

    began: Began | None = None
    text: list[str] = field(default_factory=list)
    calls: dict[int, list[CallPiece]] = field(default_factory=dict)
    logprobs: list[TokenLogprob] = field(default_factory=list)

    def add(self, piece: Piece) -> None:
        self.began = self.began or piece.began
        self.text.append(piece.text)
        self.logprobs += piece.logprobs
        if piece.call is not None:
            self.calls.setdefault(piece.call.index, []).append(piece.call)

    def whole(self, ended: Ended) -> Whole:
        calls = [
            ToolCall(
                "".join(part.id for part in parts),
                "".join(part.name for part in parts),
                "".join(part.arguments for part in parts),
            )
            for _, parts in sorted(self.calls.items())
        ]
        return Whole("".join(self.text), calls, self.logprobs, ended)


async def whole(request: Request, answering: Answering) -> Whole | None:
    """The whole answer; None if the client went away meanwhile, and then nobody reads what is returned."""

    async def gather() -> Whole:
        gathering = Gathering()
        async for part in answering:
            if isinstance(part, Ended):
                return gathering.whole(part)
            gathering.add(part)
        raise RuntimeError("an answer did not say how it ended")

    try:
        return await while_there(request, gather())
    except Gone:
        return None
    finally:
        await aclose(answering)


async def while_there(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """What `work` returns. Raises Gone: the client went away meanwhile; then the work is broken off."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Gone("Nobody is there any more.")
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def begun(request: Request, answering: Answering) -> Answering:
    """Wait for the first piece, so that what is wrong with the request is an answer of its own, with its status; then
    the same pieces, the first one too. Raises Gone: the client went away meanwhile."""

    async def begin() -> Piece | Ended:
        return await anext(answering)

    try:
        first = await while_there(request, begin())
    except BaseException:
        await aclose(answering)
        raise

    async def rest() -> Answering:
        try:
            yield first
            async for part in answering:
                yield part
        finally:
            await aclose(answering)

    return rest()


async def aclose(answering: AsyncIterator[Any]) -> None:
    """Close what may be a generator."""
    close = getattr(answering, "aclose", None)
    if close is not None:
        await close()


def streamed(parts: AsyncIterator[str], media_type: str) -> StreamingResponse:
    """An answer that is sent as it comes. A client that goes away ends `parts` within a token."""
    return StreamingResponse(
        parts, media_type=media_type, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )
