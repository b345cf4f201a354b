"""Anthropic's messages as they come over the wire, and what they ask in the server's own form.

What clients send beside the fields here (cache_control, betas) changes no answer. It must never know about HTTP or how
an answer is made. Source: Anthropic's Messages API, https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from ..talking.text import clean
from .asking import Asked, Caller, Drawn, Said, Session, Tool, ToolCall
from .errors import Invalid
from .openai_wire import MOST_MESSAGES, MOST_STOPS, MOST_TOOLS, WHOLE, Count, Name, Text, Wire
from .schemas import as_text

MOST_BLOCKS = 256

CUSTOM = ("", "custom")
"""Types of a tool that the client itself describes and runs; all others run at Anthropic."""


Id = Annotated[str, Field(min_length=1, max_length=256)]


class TextBlock(Wire):
    type: Literal["text"]
    text: Text


class ImageBlock(Wire):
    type: Literal["image"]


class DocumentSource(Wire):
    type: Name
    data: Text = ""


class DocumentBlock(Wire):
    type: Literal["document"]
    source: DocumentSource
    title: Name | None = None


class ToolUseBlock(Wire):
    type: Literal["tool_use"]
    id: Id
    name: Id
    input: dict[str, Any] = Field(default_factory=dict)


def _kind(content: Any) -> str:
    return "text" if isinstance(content, str) else "blocks"


ResultPart = Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]
ResultParts = Annotated[list[ResultPart], Field(max_length=MOST_BLOCKS)]
Result = Annotated[Annotated[Text, Tag("text")] | Annotated[ResultParts, Tag("blocks")], Discriminator(_kind)]


class ToolResultBlock(Wire):
    type: Literal["tool_result"]
    tool_use_id: Id
    content: Result | None = None
    is_error: bool | None = None


class ThinkingBlock(Wire):
    """Thoughts of another model: left out."""

    type: Literal["thinking", "redacted_thinking"]


Block = Annotated[
    TextBlock | ImageBlock | DocumentBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock,
    Field(discriminator="type"),
]


Blocks = Annotated[list[Block], Field(max_length=MOST_BLOCKS)]


class WireMessage(Wire):
    role: Literal["user", "assistant", "system"]
    content: Annotated[Annotated[Text, Tag("text")] | Annotated[Blocks, Tag("blocks")], Discriminator(_kind)]


class WireTool(Wire):
    name: Id
    type: Name | None = None
    description: Text | None = None
    input_schema: dict[str, Any] = Field(default_factory=dict)


class ToolChoice(Wire):
    type: Literal["auto", "any", "tool", "none"]
    name: Name = ""
    disable_parallel_tool_use: bool | None = None


class OutputFormat(Wire):
    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class OutputConfig(Wire):
    format: OutputFormat | None = None


class Metadata(Wire):
    user_id: Annotated[str, Field(max_length=512)] | None = None


class CountRequest(Wire):
    """Body of POST /v1/messages/count_tokens, and the part of /v1/messages that makes the prompt."""

    model: Id
    messages: Annotated[list[WireMessage], Field(min_length=1, max_length=MOST_MESSAGES)]
    system: Text | Annotated[list[TextBlock], Field(max_length=MOST_BLOCKS)] = ""
    tools: Annotated[list[WireTool], Field(max_length=MOST_TOOLS)] = Field(default_factory=list)
    tool_choice: ToolChoice | None = None
    output_config: OutputConfig | None = None


class MessagesRequest(CountRequest):
    """Body of POST /v1/messages."""

    max_tokens: Count
    stream: bool | None = None
    stop_sequences: Annotated[list[Text], Field(max_length=MOST_STOPS)] | None = None
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, le=100_000), WHOLE] | None = None
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
        model=clean(request.model),
        drawn=_drawn(request) if isinstance(request, MessagesRequest) else Drawn(),
        tools=tools,
        choice=_choice(request.tool_choice, tools),
        parallel=not (request.tool_choice is not None and request.tool_choice.disable_parallel_tool_use),
        shape=as_text(shaped.schema_, "output_config.format") if shaped is not None else "",
        session=session,
    )


def _drawn(request: MessagesRequest) -> Drawn:
    stops = [clean(stop) for stop in request.stop_sequences or ()]
    if not all(stops):
        raise Invalid("A stop sequence has at least one character.", field="stop_sequences")
    return Drawn(
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        top_p=None if request.top_p is None else max(request.top_p, 1e-6),
        top_k=request.top_k,
        stop=tuple(stops),
    )


def _history(request: CountRequest) -> list[Said]:
    system = _joined([request.system] if isinstance(request.system, str) else [one.text for one in request.system])
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
            calls.append(ToolCall(clean(block.id), clean(block.name), as_text(block.input, "messages")))
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
            call_id = clean(block.tool_use_id)
            if call_id not in names:
                raise Invalid(f"No message before this one has a tool_use with the id {call_id}.", field=f"{where}.{n}")
            content = _result(block, f"{where}.{n}.content")
            results.append(Said("tool", content, call_id=call_id, name=names[call_id]))
        else:
            texts += _text(block, f"{where}.{n}")
    if texts or not results:
        results.append(Said(role, _joined(texts)))
    return results


def _result(block: ToolResultBlock, where: str) -> str:
    if block.content is None or isinstance(block.content, str):
        text = clean(block.content or "")
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
    return clean("\n".join(texts))


def _tool(tool: WireTool, n: int) -> Tool:
    if (tool.type or "") not in CUSTOM:
        raise Invalid(
            f"The tool {tool.name} ({tool.type}) runs at Anthropic. Describe a tool of your own, with an input_schema.",
            field=f"tools.{n}.type",
        )
    parameters = json.loads(as_text(tool.input_schema, f"tools.{n}.input_schema"))
    return Tool(clean(tool.name), clean(tool.description or ""), parameters)


def _choice(choice: ToolChoice | None, tools: Sequence[Tool]) -> str:
    if choice is None or choice.type == "auto":
        return "auto"
    if choice.type == "none":
        return "none"
    if not tools:
        raise Invalid("There are no tools to choose from.", field="tool_choice")
    if choice.type == "any":
        return "required"
    if clean(choice.name) not in [tool.name for tool in tools]:
        raise Invalid(f"There is no tool {choice.name!r} among the tools.", field="tool_choice.name")
    return clean(choice.name)
