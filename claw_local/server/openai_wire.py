"""OpenAI's requests, and what they ask in no API's own form.

API: https://platform.openai.com/docs/api-reference (chat completions, completions, embeddings, models). What is not
known is left alone, as other servers do. It must never know how an answer is written.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from ..talking.text import clean
from .api import caller_of, session_of
from .asking import ANY_OBJECT, Asked, Drawn, Said, Tool, ToolCall
from .errors import Invalid
from .schemas import as_text

MOST_MESSAGES = 2000
MOST_TOOLS = 128
MOST_STOPS = 16
MOST_TOKENS = 1_000_000
MOST_PROMPTS = 16
MOST_TEXTS = 256
LARGEST_SEED = 2**63 - 1


def _whole(value: Any) -> Any:
    """JSON knows no difference between 2 and 2.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
Text = Annotated[str, Field(max_length=4_000_000)]
Name = Annotated[str, Field(max_length=256)]
Seed = Annotated[int, Field(ge=-LARGEST_SEED, le=LARGEST_SEED), WHOLE]
Count = Annotated[int, Field(ge=1, le=MOST_TOKENS), WHOLE]
Stops = str | Annotated[list[str], Field(max_length=MOST_STOPS)]
TokenId = Annotated[int, Field(ge=0, le=2**31 - 1), WHOLE]
TokenIds = Annotated[list[TokenId], Field(min_length=1, max_length=200_000)]


class Wire(BaseModel):
    """A part of a request. Types are taken as they are: "1" is no number."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


def _text_only(kind: Any) -> Any:
    if isinstance(kind, str) and kind not in ("text", "input_text", "refusal"):
        raise ValueError("only text is read here: no images, sound or files")
    return kind


class Part(Wire):
    """One part of a message's content."""

    type: Annotated[Literal["text", "input_text", "refusal"], BeforeValidator(_text_only)]
    text: Text | None = None


class FunctionCall(Wire):
    name: Name
    arguments: Text = "{}"


class Called(Wire):
    """A call that the assistant made earlier."""

    id: Name = ""
    type: Literal["function"] = "function"
    function: FunctionCall


class ChatMessage(Wire):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Text | Annotated[list[Part], Field(max_length=256)] | None = None
    name: Name | None = None
    tool_calls: Annotated[list[Called], Field(max_length=MOST_TOOLS)] | None = None
    tool_call_id: Name | None = None


class Function(Wire):
    name: Annotated[str, Field(min_length=1, max_length=128)]
    description: Text | None = None
    parameters: dict[str, Any] | None = None


class FunctionTool(Wire):
    type: Literal["function"] = "function"
    function: Function


class Named(Wire):
    name: Name


class NamedTool(Wire):
    type: Literal["function"] = "function"
    function: Named


class Shape(Wire):
    name: Name = ""
    schema_: dict[str, Any] = Field(alias="schema")


class PlainFormat(Wire):
    type: Literal["text", "json_object"]


class ShapedFormat(Wire):
    type: Literal["json_schema"]
    json_schema: Shape


def _with_schema(form: Any) -> Any:
    """Said here: of two kinds of formats the wrong one would be missed."""
    if isinstance(form, dict) and form.get("type") == "json_schema":
        named = form.get("json_schema")
        if not isinstance(named, dict) or not isinstance(named.get("schema"), dict):
            raise ValueError('a json_schema needs its schema: "json_schema": {"name": "…", "schema": {…}}')
    return form


class StreamOptions(Wire):
    include_usage: bool | None = None


class Drawing(Wire):
    """How to draw, the same in both kinds of completions."""

    model: Name = ""
    max_tokens: Count | None = None
    temperature: Annotated[float, Field(ge=0, le=5)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, le=100_000), WHOLE] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repeat_penalty: Annotated[float, Field(ge=1, le=3)] | None = None
    seed: Seed | None = None
    stop: Stops | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1), WHOLE] | None = None
    user: Annotated[str, Field(max_length=512)] | None = None

    def drawn(self, most: int | None) -> Drawn:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return Drawn(
            max_tokens=most,
            temperature=self.temperature,
            top_p=None if self.top_p is None else max(self.top_p, 1e-6),
            top_k=self.top_k,
            min_p=self.min_p,
            repeat_penalty=self.repeat_penalty,
            seed=None if self.seed is None else self.seed % (2**32 - 1),
            stop=tuple(clean(stop) for stop in stops if clean(stop)),
        )

    @property
    def counts(self) -> bool:
        """Whether a stream ends in the numbers of tokens."""
        return bool(self.stream_options and self.stream_options.include_usage)


class ChatRequest(Drawing):
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES)]
    max_completion_tokens: Count | None = None
    tools: Annotated[list[FunctionTool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: Annotated[PlainFormat | ShapedFormat | None, BeforeValidator(_with_schema)] = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20), WHOLE] | None = None

    def asked(self, request: Request) -> Asked:
        """Raises Invalid."""
        choice = self.tool_choice or "auto"
        return Asked(
            caller=caller_of(request),
            messages=tuple(_said(message) for message in self.messages),
            model=clean(self.model),
            drawn=self.drawn(self.max_completion_tokens or self.max_tokens),
            tools=tuple(_tool(tool.function) for tool in self.tools or ()),
            choice=clean(choice) if isinstance(choice, str) else f"{clean(choice.function.name)}",
            parallel=self.parallel_tool_calls is not False,
            shape=_shape(self.response_format),
            logprobs=(self.top_logprobs or 0) if self.logprobs else None,
            session=session_of(request, clean(self.user or "")),
        )


class CompletionRequest(Drawing):
    prompt: (
        Text
        | Annotated[list[Text], Field(min_length=1, max_length=MOST_PROMPTS)]
        | TokenIds
        | Annotated[list[TokenIds], Field(min_length=1, max_length=MOST_PROMPTS)]
    )
    logprobs: Annotated[int, Field(ge=0, le=20), WHOLE] | None = None
    echo: bool | None = None

    def asked(self, request: Request) -> list[Asked]:
        """One for each prompt. Raises Invalid."""
        if self.stream and len(self.prompts) > 1:
            raise Invalid("A stream goes on with one prompt.", field="prompt")
        return [
            Asked(
                caller=caller_of(request),
                prompt=clean(prompt) if isinstance(prompt, str) else None,
                prompt_ids=() if isinstance(prompt, str) else tuple(prompt),
                model=clean(self.model),
                drawn=self.drawn(self.max_tokens or 16),
                logprobs=self.logprobs,
                session=session_of(request, clean(self.user or "")),
            )
            for prompt in self.prompts
        ]

    @property
    def prompts(self) -> list[str | list[int]]:
        if isinstance(self.prompt, str):
            return [self.prompt]
        if self.prompt and isinstance(self.prompt[0], int):
            return [[part for part in self.prompt if isinstance(part, int)]]
        return [part for part in self.prompt if not isinstance(part, int)]


class EmbeddingRequest(Wire):
    model: Name = ""
    input: (
        Text
        | Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)]
        | TokenIds
        | Annotated[list[TokenIds], Field(min_length=1, max_length=MOST_TEXTS)]
    )
    encoding_format: Literal["float", "base64"] | None = None

    @property
    def texts(self) -> list[str | list[int]]:
        if isinstance(self.input, str):
            return [clean(self.input)]
        if self.input and isinstance(self.input[0], int):
            return [[part for part in self.input if isinstance(part, int)]]
        return [clean(part) if isinstance(part, str) else part for part in self.input if not isinstance(part, int)]


KEPT = r"^(chatcmpl-|msg_)?[1-9][0-9]{0,17}(-[A-Za-z0-9_-]{0,60})?$"


def _kept(identity: Any) -> Any:
    if isinstance(identity, str) and not re.fullmatch(KEPT, identity):
        raise ValueError("only an answer that is kept can be spoken of, and its id begins with its number")
    return identity


def _words(hint: str) -> str:
    """Without what cannot be shown: a hint goes into prompts, and onto the screen."""
    shown = "".join(letter if letter.isprintable() else " " for letter in clean(hint))
    if not (words := " ".join(shown.split())):
        raise ValueError("it says nothing. Write the wish in words, or leave it out")
    return words


class FeedbackRequest(Wire):
    """What a person said outright about a reply.

    Attributes:
        id: as the answer had it.
        score: none takes back what was said before; it goes without hint and edit.
        edit: the text as it should have been.
    """

    id: Annotated[str, Field(pattern=KEPT), BeforeValidator(_kept)]
    score: Literal["good", "bad", "none"] | None = None
    hint: Annotated[str, Field(max_length=400), AfterValidator(_words)] | None = None
    edit: Annotated[str, Field(max_length=200_000)] | None = None

    @property
    def message_id(self) -> int:
        """The message's number."""
        return int(self.id.removeprefix("chatcmpl-").removeprefix("msg_").partition("-")[0])


def _said(message: ChatMessage) -> Said:
    content = message.content
    if isinstance(content, list):
        content = "\n".join(part.text or "" for part in content)
    roles: dict[str, Any] = {"developer": "system", "function": "tool"}
    calls = tuple(
        ToolCall(clean(call.id), clean(call.function.name), clean(call.function.arguments))
        for call in message.tool_calls or ()
    )
    return Said(
        roles.get(message.role, message.role),
        clean(content or ""),
        calls=calls if message.role == "assistant" else (),
        call_id=clean(message.tool_call_id or ""),
        name=clean(message.name or "") if message.role in ("tool", "function") else "",
    )


def _tool(function: Function) -> Tool:
    parameters = json.loads(as_text(function.parameters or {}, "tools"))
    return Tool(clean(function.name), clean(function.description or ""), parameters)


def _shape(form: PlainFormat | ShapedFormat | None) -> str:
    if isinstance(form, ShapedFormat):
        return as_text(form.json_schema.schema_, "response_format")
    return ANY_OBJECT if form is not None and form.type == "json_object" else ""
