"""From messages to prompt tokens: template text may use control tokens, what people and tools wrote may not.

It must never know about the engine's state: it needs the template and a tokenizer, nothing else.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..errors import EngineError
from ..language import _
from .base import Message, Prompt, ToolText
from .template import ChatTemplate, TemplateError

_DROP_BLOCK = 4
"""Turns are left out in blocks of a quarter of the room, so that the prompt's beginning stays the same for several
turns and its KV cache can be kept."""
_LONGEST_TOKEN = 256
"""Characters. What has more of these for each token there is room for is not cut into tokens first: that takes minutes,
and cannot be stopped."""


class Tokens(Protocol):
    """The part of a model that prompts are made with."""

    bos: int
    """Token that begins a text, -1 if there is none."""
    adds_bos: bool
    """Whether each prompt begins with it."""

    def tokenize(self, text: str, *, special: bool) -> list[int]: ...
    def is_control(self, token: int) -> bool: ...
    def is_eog(self, token: int) -> bool: ...
    def token_text(self, token: int) -> str: ...


class PromptRenderer:
    """Turns chats into prompts with one model's template and tokenizer."""

    def __init__(self, template: ChatTemplate, tokens: Tokens, *, may_grow: bool = True) -> None:
        """`may_grow`: whether a larger context can be set: the model was trained for more than there is."""
        self._may_grow = may_grow
        self._template = template
        self._tokens = tokens
        self._nonce = secrets.token_hex(8)
        self._takes_system: bool | None = None
        self._takes_tools: bool | None = None
        self._tools: list[Any] = []

    @property
    def source(self) -> str:
        """The template's own text; "" for a model without one."""
        return self._template.source

    @property
    def takes_tools(self) -> bool:
        """Whether the template writes out tools and calls, and so the model was taught to call some."""
        if self._takes_tools is None:
            tool = {"name": self._sentinel(0), "description": "", "parameters": {"type": "object", "properties": {}}}
            try:
                text = self._template.render(
                    [{"role": "user", "content": "x"}], [{"type": "function", "function": tool}]
                )
                self._takes_tools = self._sentinel(0) in text
            except TemplateError:
                self._takes_tools = False
        return self._takes_tools

    def render(self, messages: Sequence[Message], room: int, tools: Sequence[ToolText] = ()) -> Prompt:
        """The prompt for `messages`, at most `room` tokens long; the oldest turns give way. `tools`: what the template
        offers to call.

        The system message and the last message always stay. A turn is a user message with all that answers it. When
        turns have to go, they go until the excess, rounded up to quarters of the room, is gone.

        Raises:
            EngineError: no messages, the template refuses them, or they do not fit even without the old turns.
        """
        if not messages:
            raise EngineError(_("There is nothing to answer: the chat has no messages. Write one first."))
        if len(messages[-1].content) > _LONGEST_TOKEN * room:
            raise EngineError(
                _(
                    "The last message is too long: it has {count:,} characters, and there is "
                    "room for {room} tokens. Shorten it, or set a larger model.context.",
                    count=len(messages[-1].content),
                    room=room,
                )
                if self._may_grow
                else _(
                    "The last message is too long: it has {count:,} characters, and there is room for {room} tokens, "
                    "as this model was made for no longer texts. Shorten it, or use another model.",
                    count=len(messages[-1].content),
                    room=room,
                )
            )
        self._tools = [self._harmless(tool) for tool in tools]
        ids = self._ids(messages)
        if len(ids) <= room:
            return Prompt(tuple(ids))
        first = 1 if messages[0].role == "system" else 0
        cuts = [n for n in range(first + 1, len(messages)) if messages[n].role == "user"]
        if first < len(messages) - 1 and messages[-1].role != "user":
            cuts.append(len(messages) - 1)
        block = max(1, room // _DROP_BLOCK)
        goal = len(ids) - -(-(len(ids) - room) // block) * block
        for wanted in (goal, room):
            found = self._drop(messages, first, cuts, wanted)
            if found is not None:
                return found
        shortest = self._ids([*messages[:first], messages[-1]])
        raise EngineError(
            _(
                "The last message is too long: with what must stay before it, it takes {count} "
                "tokens, and there is room for {room}. Shorten it, or set a larger "
                "model.context.",
                count=len(shortest),
                room=room,
            )
            if self._may_grow
            else _(
                "The last message is too long: with what must stay before it, it takes {count} tokens, and there is "
                "room for {room}, as this model was made for no longer texts. Shorten it, or use another model.",
                count=len(shortest),
                room=room,
            )
        )

    def _drop(self, messages: Sequence[Message], first: int, cuts: Sequence[int], wanted: int) -> Prompt | None:
        """Leave out as little as makes the prompt at most `wanted` tokens long; None if nothing does."""
        found: Prompt | None = None
        low, high = 0, len(cuts)
        while low < high:
            middle = (low + high) // 2
            ids = self._ids([*messages[:first], *messages[cuts[middle] :]])
            if len(ids) <= wanted:
                found = Prompt(tuple(ids), cuts[middle] - first)
                high = middle
            else:
                low = middle + 1
        return found

    def _ids(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of the whole chat as the template writes it, with the one BOS the vocabulary asks for."""
        if messages[0].role == "system" and not self._system_is_taken():
            messages = _fold_system(messages)
        try:
            parts, contents = self._split(messages)
            ids = self._join(parts, contents, messages) if parts else self._plain(messages)
        except TemplateError as error:
            raise EngineError(
                _(
                    "The model's chat template refuses this chat: {error}. Begin a new chat, or use another model.",
                    error=error,
                )
            ) from error
        tokens = self._tokens
        if tokens.adds_bos and tokens.bos >= 0 and ids[:1] != [tokens.bos]:
            ids.insert(0, tokens.bos)
        return ids

    def _sentinel(self, index: int) -> str:
        return f"claw{self._nonce}n{index}e"

    def _split(self, messages: Sequence[Message]) -> tuple[list[str], list[str]]:
        """The template's own text around the contents: parts [N + 1], and contents [N] as the template writes them.

        Both are empty if the template does more with a content than to write it once (or to trim it).
        """
        marked = self._template.render(
            [self._written(message, self._sentinel(index)) for index, message in enumerate(messages)], self._tools
        )
        pieces = re.split(rf"claw{self._nonce}n(\d+)e", marked)
        parts, order = pieces[::2], [int(number) for number in pieces[1::2]]
        if order != list(range(len(messages))):
            return [], []
        plain = self._template.render([self._written(message, message.content) for message in messages], self._tools)
        for contents in ([m.content for m in messages], [m.content.strip() for m in messages]):
            if "".join(_interleave(parts, contents)) == plain:
                return parts, contents
        return [], []

    def _join(self, parts: Sequence[str], contents: Sequence[str], messages: Sequence[Message]) -> list[int]:
        """Tokenise text in runs as long as possible, so that tokens are the usual ones; a run ends where ids are given
        or where a content spells a control token."""
        ids: list[int] = []
        run = [(parts[0], True)]
        for part, content, message in zip(parts[1:], contents, messages, strict=True):
            if message.token_ids:
                ids += self._run(run)
                ids += self._without_end(message.token_ids)
                run = [(part, True)]
            elif self._controls(content):
                ids += self._run(run)
                ids += self._tokens.tokenize(content, special=False)
                run = [(part, True)]
            else:
                run += [(content, False), (part, True)]
        return ids + self._run(run)

    def _run(self, run: Sequence[tuple[str, bool]]) -> list[int]:
        """Tokens of a run of (text, may it hold control tokens)."""
        joined = self._tokens.tokenize("".join(text for text, _ in run), special=True)
        own = [token for text, special in run if special for token in self._controls(text)]
        if [token for token in joined if self._tokens.is_control(token)] == own:
            return joined
        # A content and the template's text beside it spell a control token together.
        return [token for text, special in run for token in self._tokens.tokenize(text, special=special)]

    def _controls(self, text: str) -> list[int]:
        return [token for token in self._tokens.tokenize(text, special=True) if self._tokens.is_control(token)]

    def _without_end(self, token_ids: Sequence[int]) -> list[int]:
        # The template writes the end of the turn itself.
        end = len(token_ids) - 1 if self._tokens.is_eog(token_ids[-1]) else len(token_ids)
        return list(token_ids[:end])

    def _plain(self, messages: Sequence[Message]) -> list[int]:
        """For a template that reworks contents: one text, in which control tokens that contents spell are broken up."""
        text = self._template.render(
            [self._written(message, self._broken_up(message.content)) for message in messages], self._tools
        )
        return self._tokens.tokenize(text, special=True)

    def _written(self, message: Message, content: str) -> dict[str, Any]:
        """A message as templates take it."""
        written: dict[str, Any] = {"role": message.role, "content": content}
        if message.calls:
            written["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": self._harmless(call.name), "arguments": self._harmless(call.arguments)},
                }
                for call in message.calls
            ]
        if message.name:
            written["name"] = self._harmless(message.name)
        if message.call_id:
            written["tool_call_id"] = self._harmless(message.call_id)
        return written

    def _harmless(self, value: Any) -> Any:
        """JSON that templates write out among their own text, without control tokens in any text of it."""
        if isinstance(value, str):
            return self._broken_up(value)
        if isinstance(value, Mapping):
            return {self._broken_up(str(name)): self._harmless(part) for name, part in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._harmless(part) for part in value]
        return value

    def _broken_up(self, content: str) -> str:
        while controls := self._controls(content):
            broken = content
            for token in set(controls):
                text = self._tokens.token_text(token)
                broken = broken.replace(text, f"{text[:1]} {text[1:]}")
            if broken == content:
                return ""  # Spelt in a way that cannot be found again: nothing of it is safe to pass on.
            content = broken
        return content

    def _system_is_taken(self) -> bool:
        """Whether the template writes a system message out; some refuse it, some leave it away."""
        if self._takes_system is None:
            try:
                text = self._template.render(
                    [
                        {"role": "system", "content": self._sentinel(0)},
                        {"role": "user", "content": self._sentinel(1)},
                    ]
                )
                self._takes_system = self._sentinel(0) in text
            except TemplateError:
                self._takes_system = False
        return self._takes_system


def _fold_system(messages: Sequence[Message]) -> list[Message]:
    """Put the system message's text at the head of the first user message."""
    system, rest = messages[0], list(messages[1:])
    for index, message in enumerate(rest):
        if message.role == "user":
            rest[index] = Message("user", f"{system.content}\n\n{message.content}".strip())
            return rest
    return [Message("user", system.content), *rest]


def _interleave(parts: Sequence[str], contents: Sequence[str]) -> list[str]:
    return [text for pair in zip(parts, [*contents, ""], strict=True) for text in pair]
