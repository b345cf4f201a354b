"""Ollama's requests as they come over the wire, and what they ask in the server's own form.

What clients send beside the fields here (num_ctx, num_gpu) changes no answer. It must never know about HTTP or how an
answer is made. Source: Ollama's API, https://docs.ollama.com/api.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field

from ..talking.text import clean
from .asking import ANY_OBJECT, Asked, Caller, Drawn, Said, Session, Tool, ToolCall
from .errors import Invalid
from .openai_wire import (
    MOST_MESSAGES,
    MOST_STOPS,
    MOST_TEXTS,
    MOST_TOKENS,
    MOST_TOOLS,
    WHOLE,
    Name,
    Seed,
    Text,
    TokenId,
    Wire,
)
from .schemas import as_text

Id = Annotated[str, Field(min_length=1, max_length=256)]


class Options(Wire):
    """How to draw."""

    num_predict: Annotated[int, Field(le=MOST_TOKENS), WHOLE] | None = None
    temperature: Annotated[float, Field(ge=0, le=5)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(le=100_000), WHOLE] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repeat_penalty: Annotated[float, Field(ge=0, le=3)] | None = None
    seed: Seed | None = None
    stop: Text | Annotated[list[Text], Field(max_length=MOST_STOPS)] | None = None


class Function(Wire):
    name: Id
    description: Text | None = None
    parameters: dict[str, Any] | None = None


class WireTool(Wire):
    type: Literal["function"] = "function"
    function: Function


class CalledFunction(Wire):
    name: Id
    arguments: dict[str, Any] = Field(default_factory=dict)


class WireCall(Wire):
    id: Name | None = None
    function: CalledFunction


class WireMessage(Wire):
    role: Literal["system", "user", "assistant", "tool"]
    content: Text | None = ""
    images: list[str] | None = None
    tool_calls: Annotated[list[WireCall], Field(max_length=MOST_TOOLS)] | None = None
    tool_name: Name | None = None
    tool_call_id: Name | None = None


class ModelRequest(Wire):
    """Names a model. Older clients call the field `name`."""

    model: Annotated[Id, Field(validation_alias=AliasChoices("model", "name"))]

    @property
    def asked_for(self) -> str:
        """Without the tag that Ollama's clients add."""
        return clean(self.model).strip().removesuffix(":latest")


class PullRequest(ModelRequest):
    """Body of POST /api/pull."""

    stream: bool | None = True


class AnswerRequest(ModelRequest):
    """What /api/chat and /api/generate share."""

    stream: bool | None = True
    format: Literal["", "json"] | dict[str, Any] | None = None
    options: Options | None = None
    keep_alive: float | str | None = None
    think: bool | str | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20), WHOLE] | None = None

    @property
    def unloads(self) -> bool:
        """Whether the client asks for the model to leave memory: `keep_alive` is zero."""
        return self.keep_alive in (0, "0", "0s", "0m", "0h")


class ChatRequest(AnswerRequest):
    """Body of POST /api/chat."""

    messages: Annotated[list[WireMessage], Field(max_length=MOST_MESSAGES)] | None = None
    tools: Annotated[list[WireTool], Field(max_length=MOST_TOOLS)] | None = None


class GenerateRequest(AnswerRequest):
    """Body of POST /api/generate."""

    prompt: Text | None = ""
    suffix: Text | None = None
    system: Text | None = None
    template: Text | None = None
    context: Annotated[list[TokenId], Field(max_length=200_000)] | None = None
    raw: bool | None = False
    images: list[str] | None = None


class EmbedRequest(ModelRequest):
    """Body of POST /api/embed."""

    input: Text | Annotated[list[Text], Field(max_length=MOST_TEXTS)] = Field(default_factory=list)
    keep_alive: float | str | None = None


class EmbeddingsRequest(ModelRequest):
    """Body of POST /api/embeddings, which came before /api/embed."""

    prompt: Text = ""
    keep_alive: float | str | None = None


def chat(request: ChatRequest, model: str, caller: Caller, session: Session) -> Asked:
    """What a chat request asks. Raises Invalid."""
    _refuse_thinking(request, model)
    history = _history(request.messages or [])
    if not history:
        raise Invalid("There is no message to answer.", field="messages")
    if history[-1].role == "assistant":
        raise Invalid(
            "The last message is the assistant's: an answer cannot be begun by the client here. "
            "End with a message of the user.",
            field="messages",
        )
    return Asked(
        caller=caller,
        messages=tuple(history),
        model=model,
        drawn=_drawn(request.options),
        tools=tuple(_tool(tool.function) for tool in request.tools or ()),
        shape=_shape(request),
        logprobs=_logprobs(request),
        session=session,
    )


def generate(request: GenerateRequest, model: str, caller: Caller, session: Session) -> Asked:
    """What a generate request asks: one message of the user, or, if `raw`, a text to go on with. Raises Invalid."""
    _refuse_thinking(request, model)
    if request.suffix:
        raise Invalid(f"{model} does not support insert: it goes on with a text, and fills no gaps.", field="suffix")
    if request.template:
        raise Invalid("The model's own template is used. Write the prompt out and send it with raw.", field="template")
    _refuse_images(request.images, "images")
    prompt = clean(request.prompt or "")
    messages = [Said("user", prompt)]
    if request.system:
        messages.insert(0, Said("system", clean(request.system)))
    return Asked(
        caller=caller,
        messages=() if request.raw else tuple(messages),
        prompt=prompt if request.raw else None,
        model=model,
        drawn=_drawn(request.options),
        shape=_shape(request),
        logprobs=_logprobs(request),
        session=session,
    )


def _tool(function: Function) -> Tool:
    parameters = json.loads(as_text(function.parameters or {}, "tools"))
    return Tool(clean(function.name), clean(function.description or ""), parameters)


def _history(messages: Sequence[WireMessage]) -> list[Said]:
    """Calls without an id get one, and each result of a tool gets that of the call it answers."""
    history: list[Said] = []
    waiting: list[ToolCall] = []
    for n, message in enumerate(messages):
        _refuse_images(message.images, f"messages.{n}.images")
        content = clean(message.content or "")
        if message.role == "tool":
            call = _answered(message, waiting)
            if call is not None:
                waiting.remove(call)
            name = clean(message.tool_name or "") or (call.name if call is not None else "")
            call_id = call.id if call is not None else clean(message.tool_call_id or "") or f"call_{n}"
            history.append(Said("tool", content, call_id=call_id, name=name))
            continue
        calls = tuple(
            ToolCall(
                clean(call.id or "") or f"call_{n}_{k}",
                clean(call.function.name),
                as_text(call.function.arguments, f"messages.{n}.tool_calls"),
            )
            for k, call in enumerate(message.tool_calls or [])
        )
        waiting += calls
        history.append(Said(message.role, content, calls=calls))
    return history


def _answered(message: WireMessage, waiting: Sequence[ToolCall]) -> ToolCall | None:
    """The call that a tool's message answers: by its id, else its name, else the order."""
    if message.tool_call_id:
        return next((call for call in waiting if call.id == clean(message.tool_call_id)), None)
    if message.tool_name:
        return next((call for call in waiting if call.name == message.tool_name), None)
    return waiting[0] if waiting else None


def _drawn(options: Options | None) -> Drawn:
    if options is None:
        return Drawn()
    stop = [options.stop] if isinstance(options.stop, str) else options.stop or []
    predict = options.num_predict
    return Drawn(
        # As Ollama has it, 0 and less mean: until the answer ends by itself.
        max_tokens=None if predict is None else MOST_TOKENS if predict <= 0 else predict,
        temperature=options.temperature,
        top_p=None if options.top_p is None else max(options.top_p, 1e-6),
        top_k=None if options.top_k is None else max(0, options.top_k),
        min_p=options.min_p,
        # Below 1 it would reward repetition; 0 is how some clients turn it off.
        repeat_penalty=None if options.repeat_penalty is None else max(1.0, options.repeat_penalty),
        seed=options.seed % (2**32 - 1) if options.seed is not None and options.seed >= 0 else None,
        stop=tuple(clean(text) for text in stop if clean(text)),
    )


def _shape(request: AnswerRequest) -> str:
    if not request.format:
        return ""
    return ANY_OBJECT if request.format == "json" else as_text(request.format, "format")


def _logprobs(request: AnswerRequest) -> int | None:
    return (request.top_logprobs or 0) if request.logprobs else None


def _refuse_thinking(request: AnswerRequest, model: str) -> None:
    if request.think:
        raise Invalid(f"{model} does not support thinking.", field="think")


def _refuse_images(images: Sequence[str] | None, where: str) -> None:
    if images:
        raise Invalid("Images cannot be read by the model here. Send text.", field=where)
