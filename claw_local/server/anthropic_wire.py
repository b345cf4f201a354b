"""Anthropic's messages as they come over the wire, and what they ask in the server's own form.

It must never know about HTTP or how an answer is made. Source: Anthropic's Messages API,
https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from .asking import Asked, Caller, Drawn, Said, Session, Tool, ToolCall
from .errors import Invalid

CUSTOM = ("", "custom")
"""Types of a tool that the client itself describes and runs; all others run at Anthropic."""


class _Wire(BaseModel):
    """What clients send beside the known fields (cache_control, betas) changes no answer here."""

    model_config = ConfigDict(extra="ignore")


class TextBlock(_Wire):
    type: Literal["text"]
    text: str


class ImageBlock(_Wire):
    type: Literal["image"]


class DocumentSource(_Wire):
    type: str
    data: str = ""


class DocumentBlock(_Wire):
    type: Literal["document"]
    source: DocumentSource
    title: str | None = None


class ToolUseBlock(_Wire):
    type: Literal["tool_use"]
    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    input: dict[str, Any] = Field(default_factory=dict)


ResultPart = Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]


class ToolResultBlock(_Wire):
    type: Literal["tool_result"]
    tool_use_id: str = Field(min_length=1)
    content: str | list[ResultPart] = ""
    is_error: bool = False


class ThinkingBlock(_Wire):
    """Thoughts of another model: left out."""

    type: Literal["thinking", "redacted_thinking"]


Block = Annotated[
    TextBlock | ImageBlock | DocumentBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock,
    Field(discriminator="type"),
]


class WireMessage(_Wire):
    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class WireTool(_Wire):
    name: str = Field(min_length=1)
    type: str | None = None
    description: str = ""
    input_schema: dict[str, Any] = Field(default_factory=dict)


class ToolChoice(_Wire):
    type: Literal["auto", "any", "tool", "none"]
    name: str = ""
    disable_parallel_tool_use: bool = False


class OutputFormat(_Wire):
    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class OutputConfig(_Wire):
    format: OutputFormat | None = None


class Metadata(_Wire):
    user_id: str | None = None


class CountRequest(_Wire):
    """Body of POST /v1/messages/count_tokens, and the part of /v1/messages that makes the prompt."""

    model: str = Field(min_length=1)
    messages: list[WireMessage] = Field(min_length=1)
    system: str | list[TextBlock] = ""
    tools: list[WireTool] = Field(default_factory=list)
    tool_choice: ToolChoice | None = None
    output_config: OutputConfig | None = None


class MessagesRequest(CountRequest):
    """Body of POST /v1/messages."""

    max_tokens: int = Field(ge=1)
    stream: bool = False
    stop_sequences: list[str] = Field(default_factory=list)
    temperature: float | None = Field(None, ge=0.0, le=1.0)
    top_p: float | None = Field(None, ge=0.0, le=1.0)
    top_k: int | None = Field(None, ge=0)
    metadata: Metadata | None = None
    thread: dict[str, Any] | None = None


class NoThreads(Invalid):
    """The client wants the server to hold the chat; told so, it sends the whole chat each time instead.

    `details` are what Anthropic's clients know this by.
    """

    details: ClassVar[dict[str, Any]] = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}

    def __init__(self) -> None:
        super().__init__("Threads are not held here. Send the whole chat with each request.", field="thread")


def asked(request: CountRequest, caller: Caller, session: Session) -> Asked:
    """What a request asks.

    Raises:
        Invalid: images, tools that run at Anthropic, a result of no call, a prefilled answer, or a thread.
    """
    if isinstance(request, MessagesRequest) and request.thread is not None:
        raise NoThreads
    tools = tuple(_tool(tool, n) for n, tool in enumerate(request.tools))
    shaped = request.output_config.format if request.output_config is not None else None
    return Asked(
        caller=caller,
        messages=tuple(_history(request)),
        model=request.model,
        drawn=_drawn(request) if isinstance(request, MessagesRequest) else Drawn(),
        tools=tools,
        choice=_choice(request.tool_choice, tools),
        parallel=not (request.tool_choice is not None and request.tool_choice.disable_parallel_tool_use),
        shape=json.dumps(shaped.schema_) if shaped is not None else "",
        session=session,
    )


def _drawn(request: MessagesRequest) -> Drawn:
    if any(not stop for stop in request.stop_sequences):
        raise Invalid("A stop sequence has at least one character.", field="stop_sequences")
    return Drawn(
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p or None,  # Nothing can be drawn from no probability at all.
        top_k=request.top_k,
        stop=tuple(request.stop_sequences),
    )


def _history(request: CountRequest) -> list[Said]:
    system = request.system if isinstance(request.system, str) else _joined([b.text for b in request.system])
    history = [Said("system", system)] if system.strip() else []
    names: dict[str, str] = {}
    for n, message in enumerate(request.messages):
        where = f"messages.{n}.content"
        blocks = _blocks(message)
        if message.role == "assistant":
            said = _assistant(blocks, where)
            names |= {call.id: call.name for call in said.calls}
            history.append(said)
        else:
            history += _person(message.role, blocks, where, names)
    if history[-1].role == "assistant":
        raise Invalid(
            "The last message is the assistant's: an answer cannot be begun by the client here. "
            "End with a message of the user.",
            field="messages",
        )
    return history


def _blocks(message: WireMessage) -> Sequence[Block]:
    if isinstance(message.content, str):
        return [TextBlock(type="text", text=message.content)]
    return message.content


def _assistant(blocks: Sequence[Block], where: str) -> Said:
    texts: list[str] = []
    calls: list[ToolCall] = []
    for n, block in enumerate(blocks):
        if isinstance(block, ToolUseBlock):
            calls.append(ToolCall(block.id, block.name, json.dumps(block.input, ensure_ascii=False)))
        elif isinstance(block, ToolResultBlock):
            raise Invalid("A tool_result stands in a message of the user.", field=f"{where}.{n}")
        else:
            texts += _text(block, f"{where}.{n}")
    return Said("assistant", _joined(texts), calls=tuple(calls))


def _person(role: Literal["user", "system"], blocks: Sequence[Block], where: str, names: dict[str, str]) -> list[Said]:
    """The results of tools come first, each a message of its own; then what the person says."""
    results: list[Said] = []
    texts: list[str] = []
    for n, block in enumerate(blocks):
        if isinstance(block, ToolUseBlock):
            raise Invalid("A tool_use stands in a message of the assistant.", field=f"{where}.{n}")
        if isinstance(block, ToolResultBlock):
            if block.tool_use_id not in names:
                raise Invalid(
                    f"No message before this one has a tool_use with the id {block.tool_use_id}.", field=f"{where}.{n}"
                )
            content = _result(block, f"{where}.{n}.content")
            name = names[block.tool_use_id]
            results.append(Said("tool", content, call_id=block.tool_use_id, name=name))
        else:
            texts += _text(block, f"{where}.{n}")
    if texts or not results:
        results.append(Said(role, _joined(texts)))
    return results


def _result(block: ToolResultBlock, where: str) -> str:
    if isinstance(block.content, str):
        text = block.content
    else:
        text = _joined([text for n, part in enumerate(block.content) for text in _text(part, f"{where}.{n}")])
    return f"Error: {text}" if block.is_error and not text.lower().startswith("error") else text


def _text(block: TextBlock | ImageBlock | DocumentBlock | ThinkingBlock, where: str) -> list[str]:
    if isinstance(block, TextBlock):
        return [block.text]
    if isinstance(block, ThinkingBlock):
        return []
    if isinstance(block, DocumentBlock) and block.source.type == "text":
        return [f"{block.title}\n{block.source.data}" if block.title else block.source.data]
    what = "Images" if isinstance(block, ImageBlock) else "Documents other than plain text"
    raise Invalid(f"{what} cannot be read by the model here. Send text.", field=where)


def _joined(texts: Sequence[str]) -> str:
    return "\n".join(texts)


def _tool(tool: WireTool, n: int) -> Tool:
    if (tool.type or "") not in CUSTOM:
        raise Invalid(
            f"The tool {tool.name} ({tool.type}) runs at Anthropic. Describe a tool of your own, with an input_schema.",
            field=f"tools.{n}.type",
        )
    return Tool(tool.name, tool.description, tool.input_schema)


def _choice(choice: ToolChoice | None, tools: Sequence[Tool]) -> str:
    if choice is None or choice.type == "auto":
        return "auto"
    if choice.type == "none":
        return "none"
    if not tools:
        raise Invalid("There are no tools to choose from.", field="tool_choice")
    if choice.type == "any":
        return "required"
    if choice.name not in [tool.name for tool in tools]:
        raise Invalid(f"There is no tool {choice.name!r} among the tools.", field="tool_choice.name")
    return choice.name
