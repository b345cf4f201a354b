"""What another program asks and what it gets, in no API's own form.

It must never know about HTTP, nor how an answer is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import UsageError

Role = Literal["system", "user", "assistant", "tool"]
Turn = Literal["", "main", "side"]
Finish = Literal["stop", "length", "tool_calls", "cancelled"]


# What is asked


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes:
        key: number of the key that was shown; 0 is a program of this machine without one. Chats belong to a key, and no
            other one ever sees them.
        name: the key's name.
        learn: whether what it says may teach.
        address: where the request came from: places are shared out among addresses and keys.
    """

    key: int = 0
    name: str = ""
    learn: bool = False
    address: str = ""


@dataclass(frozen=True)
class Session:
    """What a client says of the conversation a request belongs to; all of it may be left out.

    Attributes:
        id: header X-Session-Id.
        turn: header X-Turn-Type; "" means that it is told from what is asked.
        done: header X-Session-Done: no more of this session will come.
        user: the `user` field of OpenAI's API, which OpenClaw fills with its session.
    """

    id: str = ""
    turn: Turn = ""
    done: bool = False
    user: str = ""


@dataclass(frozen=True)
class ToolCall:
    """One call that the model made. `arguments`: a JSON object, in text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Said:
    """One message of the history the client repeats.

    Attributes:
        calls: what an assistant's message called.
        call_id: which call a tool's message answers.
        name: the tool that answers.
    """

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""


@dataclass(frozen=True)
class Tool:
    """A tool the client can run. `parameters`: JSON Schema of an object."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Drawn:
    """How to draw; None leaves one as the settings say. `stop`: texts that end the reply; they are not part of it."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """One request for an answer.

    Attributes:
        messages: the history, oldest first. The last one is to be answered.
        prompt: a text to go on with as it is, without the chat template; then `messages` is empty.
        prompt_ids: the same as tokens; they go before `prompt`.
        model: the name asked for; "" is what is in use.
        tools: what may be called.
        choice: "auto": call or answer; "none": answer; "required": call something; else the name of the tool to call.
        parallel: whether several calls may be made at once.
        shape: JSON Schema, in text, that the answer has to follow; "" for none. `ANY_OBJECT` is any JSON object.
        logprobs: None for none; n for the chosen tokens' log-probabilities with the n likeliest beside each.
    """

    caller: Caller
    messages: tuple[Said, ...] = ()
    prompt: str | None = None
    prompt_ids: tuple[int, ...] = ()
    model: str = ""
    drawn: Drawn = field(default_factory=Drawn)
    tools: tuple[Tool, ...] = ()
    choice: str = "auto"
    parallel: bool = True
    shape: str = ""
    logprobs: int | None = None
    session: Session = field(default_factory=Session)


ANY_OBJECT = '{"type": "object"}'


# What it gets


@dataclass(frozen=True)
class TokenLogprob:
    """One token: text, bytes, log-probability in nats, and the likeliest ones beside it as (text, log-probability)."""

    text: str
    raw: bytes
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class CallPiece:
    """A piece of the `index`-th call (from 0). The first piece of a call has its `id` and `name`; `arguments` of all
    pieces together are the JSON text."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True)
class Began:
    """What is known once an answer has begun. `model`, `message_id`, `prompt_tokens`: as in `Ended`."""

    model: str
    message_id: int
    prompt_tokens: int


@dataclass(frozen=True)
class Piece:
    """A piece of the answer: text, or a piece of a call. Text pieces are whole characters.

    Attributes:
        began: in the first piece of all, which has no text.
    """

    text: str = ""
    call: CallPiece | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    began: Began | None = None


@dataclass(frozen=True)
class Ended:
    """What comes last, always.

    Attributes:
        stopped_by: the stop text that ended it; "" if none did.
        model: name of what answered, as `Service.models` lists it.
        message_id: the reply's id, for feedback; 0 if it was not kept.
        session_id: the session it was taken to belong to.
        cached_tokens: how many of the prompt's tokens were computed before.
        prompt_ids, response_ids: tokens; empty for a model behind a server.
        load_s, prompt_s, total_s: seconds for loading the model, until the first token from then on, and in all.
    """

    finish: Finish
    stopped_by: str = ""
    model: str = ""
    message_id: int = 0
    session_id: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    prompt_ids: tuple[int, ...] = ()
    response_ids: tuple[int, ...] = ()
    load_s: float = 0.0
    prompt_s: float = 0.0
    total_s: float = 0.0


@dataclass(frozen=True)
class Offered:
    """A model that can be asked for.

    Attributes:
        name: what to ask for: the base's name, or an adapter's.
        created: when it was made, in seconds since 1970.
        size: bytes of its file; 0 if nobody says.
        sha256: hash of the model's file; "" behind a server.
        adapter: the adapter's id; 0 is the base.
        in_use: whether it is what answers where no model is named.
        context: longest prompt plus reply, in tokens.
        parameters: how many weights; 0 if nobody says.
        architecture: as the file says; "" if nobody does.
        template: the chat template's source; "" if there is none.
    """

    name: str
    created: int
    size: int = 0
    sha256: str = ""
    adapter: int = 0
    in_use: bool = False
    context: int = 0
    parameters: int = 0
    architecture: str = ""
    template: str = ""


@dataclass(frozen=True)
class Embedded:
    """Vectors [N][D] of length 1, and how many tokens all texts had together."""

    vectors: tuple[tuple[float, ...], ...]
    tokens: int
    model: str


class CannotAnswer(UsageError):
    """A request that cannot be answered as it is. The message is for whoever wrote the program that asks.

    Attributes:
        field: what of the request is wrong; "" for nothing alone.
    """

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class TooLong(CannotAnswer):
    """The prompt does not fit the model's context."""
