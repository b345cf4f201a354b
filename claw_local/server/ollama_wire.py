"""Ollama's requests as they come over the wire, and what they ask in the server's own form.

It must never know about HTTP or how an answer is made. Source: Ollama's API, https://docs.ollama.com/api.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .asking import ANY_OBJECT, Asked, Caller, Drawn, Said, Session, Tool, ToolCall
from .errors import Invalid

NO_END = 1_000_000
"""num_predict below 0: until the context is full."""


class _Wire(BaseModel):
    """What clients send beside the known fields (num_ctx, num_gpu, ...) changes no answer here."""

    model_config = ConfigDict(extra="ignore")


class Options(_Wire):
    num_predict: int | None = None
    temperature: float | None = Field(None, ge=0.0, le=5.0)
    top_p: float | None = Field(None, ge=0.0, le=1.0)
    top_k: int | None = None
    min_p: float | None = Field(None, ge=0.0, le=1.0)
    repeat_penalty: float | None = Field(None, ge=0.0, le=3.0)
    seed: int | None = None
    stop: list[str] | str | None = None


class Function(_Wire):
    name: str = Field(min_length=1)
    description: str = ""
    parameters: dict[str, Any] | None = None


class WireTool(_Wire):
    type: Literal["function"] = "function"
    function: Function


class CalledFunction(_Wire):
    name: str = Field(min_length=1)
    arguments: dict[str, Any] = Field(default_factory=dict)


class WireCall(_Wire):
    id: str | None = None
    function: CalledFunction


class WireMessage(_Wire):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = ""
    images: list[str] | None = None
    tool_calls: list[WireCall] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None


class ModelRequest(_Wire):
    """Names a model. Older clients call the field `name`."""

    model: str = ""
    name: str = ""

    @property
    def asked_for(self) -> str:
        return bare(self.model or self.name)


class AnswerRequest(ModelRequest):
    """What /api/chat and /api/generate share."""

    stream: bool | None = True
    format: Literal["", "json"] | dict[str, Any] | None = None
    options: Options | None = None
    keep_alive: float | str | None = None
    think: bool | str | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)

    @property
    def unloads(self) -> bool:
        """Whether the client asks for the model to leave memory: `keep_alive` is zero."""
        return self.keep_alive in (0, "0", "0s", "0m", "0h")


class ChatRequest(AnswerRequest):
    """Body of POST /api/chat."""

    messages: list[WireMessage] | None = None
    tools: list[WireTool] | None = None


class GenerateRequest(AnswerRequest):
    """Body of POST /api/generate."""

    prompt: str | None = ""
    suffix: str | None = None
    system: str | None = None
    template: str | None = None
    context: list[int] | None = None
    raw: bool | None = False
    images: list[str] | None = None


class EmbedRequest(ModelRequest):
    """Body of POST /api/embed."""

    input: str | list[str] = Field(default_factory=list)
    keep_alive: float | str | None = None


class EmbeddingsRequest(ModelRequest):
    """Body of POST /api/embeddings, which came before /api/embed."""

    prompt: str = ""
    keep_alive: float | str | None = None


def bare(name: str) -> str:
    """A model's name without the tag that Ollama's clients add."""
    return name.strip().removesuffix(":latest")


def chat(request: ChatRequest, model: str, caller: Caller, session: Session) -> Asked:
    """What a chat request asks. Raises Invalid."""
    _refuse_thinking(request, model)
    history = _history(request.messages or [])
    if history[-1].role == "assistant":
        raise Invalid(
            "The last message is the assistant's: an answer cannot be begun by the client here. "
            "End with a message of the user.",
            field="messages",
        )
    tools = tuple(
        Tool(tool.function.name, tool.function.description, tool.function.parameters or {})
        for tool in request.tools or []
    )
    return Asked(
        caller=caller,
        messages=tuple(history),
        model=model,
        drawn=_drawn(request.options),
        tools=tools,
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
    prompt = request.prompt or ""
    messages = [Said("user", prompt)]
    if request.system:
        messages.insert(0, Said("system", request.system))
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


def _history(messages: Sequence[WireMessage]) -> list[Said]:
    """Calls without an id get one, and each result of a tool gets that of the call it answers."""
    history: list[Said] = []
    waiting: list[ToolCall] = []
    for n, message in enumerate(messages):
        _refuse_images(message.images, f"messages.{n}.images")
        content = message.content or ""
        if message.role == "tool":
            call = _answered(message, waiting)
            if call is not None:
                waiting.remove(call)
            name = message.tool_name or (call.name if call is not None else "")
            call_id = call.id if call is not None else message.tool_call_id or f"call_{n}"
            history.append(Said("tool", content, call_id=call_id, name=name))
            continue
        calls = tuple(
            ToolCall(
                call.id or f"call_{n}_{k}", call.function.name, json.dumps(call.function.arguments, ensure_ascii=False)
            )
            for k, call in enumerate(message.tool_calls or [])
        )
        waiting += calls
        history.append(Said(message.role, content, calls=calls))
    return history


def _answered(message: WireMessage, waiting: Sequence[ToolCall]) -> ToolCall | None:
    """The call that a tool's message answers: by its id, else its name, else the order."""
    if message.tool_call_id:
        return next((call for call in waiting if call.id == message.tool_call_id), None)
    if message.tool_name:
        return next((call for call in waiting if call.name == message.tool_name), None)
    return waiting[0] if waiting else None


def _drawn(options: Options | None) -> Drawn:
    if options is None:
        return Drawn()
    stop = [options.stop] if isinstance(options.stop, str) else options.stop or []
    predict = options.num_predict
    return Drawn(
        max_tokens=None if predict is None else NO_END if predict < 0 else max(1, predict),
        temperature=options.temperature,
        top_p=options.top_p or None,
        top_k=None if options.top_k is None else max(0, options.top_k),
        min_p=options.min_p,
        # Below 1 it would reward repetition; 0 is how some clients turn it off.
        repeat_penalty=None if options.repeat_penalty is None else max(1.0, options.repeat_penalty),
        seed=options.seed if options.seed is not None and options.seed >= 0 else None,
        stop=tuple(text for text in stop if text),
    )


def _shape(request: AnswerRequest) -> str:
    if not request.format:
        return ""
    return ANY_OBJECT if request.format == "json" else json.dumps(request.format)


def _logprobs(request: AnswerRequest) -> int | None:
    return (request.top_logprobs or 0) if request.logprobs else None


def _refuse_thinking(request: AnswerRequest, model: str) -> None:
    if request.think:
        raise Invalid(f"{model} does not support thinking.", field="think")


def _refuse_images(images: Sequence[str] | None, where: str) -> None:
    if images:
        raise Invalid("Images cannot be read by the model here. Send text.", field=where)
