"""From what a program asks to what an engine takes: the prompt, and the form the reply has to keep to.

It must never know about the store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from ..engine.base import ChatEngine, Engine, FormedSampling, Message, Prompt, Sampling, has_tokens
from ..engine.grammar import ShapeError, grammar_of
from ..engine.tool_forms import IN_WORDS, Form, ToolSpec, form_of, grammar, schema, triggers
from ..engine.tool_prompts import in_words, rendered
from ..errors import EngineError
from ..memory.prompt import put_hints, written
from ..store import StoredMessage
from .asked import Asked, CannotAnswer, Tool, TooLong
from .calling import messages, spec_of

LONGEST_SHAPE = 32_000
DEEPEST_SHAPE = 40
MOST_NODES = 4000
MOST_COUNTED = 400
SHAPE = "response_format"
_COUNTED = ("minItems", "maxItems", "minLength", "maxLength")
_LARGE = re.compile(r"\{\s*\d*\s*,?\s*\d{3,}")


@dataclass(frozen=True)
class Formed:
    """How a reply is drawn.

    Attributes:
        form: how calls are written.
        tools: what may be called.
        bound: whether all of it has to keep to a form, so that its words are not quite the model's own.
        now: see `rendered`.
    """

    sampling: Sampling
    form: Form
    tools: tuple[ToolSpec, ...] = ()
    bound: bool = False
    now: str = ""


def form(engine: ChatEngine, asked: Asked, sampling: Sampling) -> Formed:
    """How to draw, and in which form.

    Raises:
        CannotAnswer: a tool is named that there is not, or the engine cannot.
    """
    tools = tuple(spec_of(tool) for tool in _allowed(asked))
    if asked.logprobs is not None and not has_tokens(engine):
        raise CannotAnswer("What answers here is behind a server, which tells no likelihoods.", field="logprobs")
    form = IN_WORDS
    if asked.tools and has_tokens(engine):
        form = form_of(engine.chat_template, engine.takes_tools)
    if not tools and not asked.shape and asked.logprobs is None:
        return Formed(sampling, form)
    for shape in (asked.shape, *(tool.parameters for tool in tools)):
        check_shape(shape)
    forced = bool(tools) and asked.choice != "auto"
    wanted = made = ""
    begins: tuple[str, ...] = ()
    if tools and asked.shape and not forced:
        # A call, or an answer of that shape: both are JSON, and a call stands without a mark then.
        form = replace(form, opens="", closes="", listed=False)
        wanted = schema(tools, form, asked.shape)
    elif tools and not has_tokens(engine):
        if forced:
            form = replace(form, opens="", closes="")
            wanted = schema(tools, form)
    elif tools:
        made = grammar(tools, form, parallel=asked.parallel)
        begins = () if forced else triggers(form)
    else:
        wanted = asked.shape
    if wanted and has_tokens(engine):
        try:
            grammar_of(wanted)
        except ShapeError as error:
            raise CannotAnswer(str(error), field=SHAPE) from error
    formed = FormedSampling(
        **asdict(sampling),
        schema=wanted,
        grammar=made,
        triggers=begins,
        alternatives=-1 if asked.logprobs is None else asked.logprobs,
    )
    now = "" if not forced else "any" if asked.choice == "required" else asked.choice
    return Formed(formed, form, tools, bound=bool(wanted or made) and not begins, now=now)


def prompt(
    engine: ChatEngine, asked: Asked, formed: Formed, replies: Sequence[StoredMessage | None], hints: Sequence[str]
) -> Prompt:
    """The prompt of a request.

    Args:
        replies: for its first messages, apart from system prompts, what is stored of each, if anything is.
        hints: wishes that stand at the end of the person's last message.

    Raises:
        TooLong: it does not fit. CannotAnswer: there is nothing to answer, or the engine cannot.
    """
    try:
        if asked.prompt is not None or asked.prompt_ids:
            return _raw(engine, asked)
        made = messages(asked.messages)
        if not made:
            raise CannotAnswer("There is no message to answer.", field="messages")
        _put_tokens(made, replies, engine.info.sha256)
        put_hints(made, hints, in_words=in_words(engine))
        reserve = min(formed.sampling.max_tokens, engine.info.context // 4)
        return rendered(engine, made, formed.tools, reserve=reserve, now=formed.now)
    except EngineError as error:
        raise TooLong(str(error), field="messages") from error


def check_shape(shape: str) -> None:
    """See that the grammar of a JSON Schema does not outgrow the machine. Raises CannotAnswer."""
    if len(shape) > LONGEST_SHAPE:
        raise CannotAnswer(f"The shape of the answer takes at most {LONGEST_SHAPE} characters.", field=SHAPE)
    found = json.loads(shape) if shape else {}
    nodes = [(found, 0)]
    count = 0
    while nodes:
        node, depth = nodes.pop()
        count += 1
        if depth > DEEPEST_SHAPE or count > MOST_NODES:
            raise CannotAnswer("The shape of the answer is too deep or too large. Ask for a simpler one.", field=SHAPE)
        if isinstance(node, dict):
            for name, value in node.items():
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                if name in _COUNTED and number and not 0 <= value <= MOST_COUNTED:
                    raise CannotAnswer(f"{name} is at most {MOST_COUNTED} here.", field=SHAPE)
                if name == "pattern" and isinstance(value, str) and (len(value) > 200 or _LARGE.search(value)):
                    raise CannotAnswer(
                        "A pattern has at most 200 characters and counts no further than 99.", field=SHAPE
                    )
            nodes += [(value, depth + 1) for value in node.values()]
        elif isinstance(node, list):
            nodes += [(value, depth + 1) for value in node]


def check_ids(engine: Engine, token_ids: Sequence[int], field: str) -> None:
    """Raises CannotAnswer: these are no tokens of the model's."""
    if any(not 0 <= token < engine.vocabulary for token in token_ids):
        raise CannotAnswer(f"There are tokens in {field} that this model does not have.", field=field)


def _allowed(asked: Asked) -> tuple[Tool, ...]:
    """The tools that may be called. Raises CannotAnswer: the one named is not there."""
    if asked.choice == "none":
        return ()
    if asked.choice in ("auto", "required"):
        if asked.choice == "required" and not asked.tools:
            raise CannotAnswer("A call is required, and no tools are given.", field="tool_choice")
        return asked.tools
    named = tuple(tool for tool in asked.tools if tool.name == asked.choice)
    if not named:
        raise CannotAnswer(f"There is no tool called {asked.choice[:80]!r} in tools.", field="tool_choice")
    return named


def _raw(engine: ChatEngine, asked: Asked) -> Prompt:
    """A text to go on with as it is. Control tokens written out in it count as such: it is the program's own."""
    if not has_tokens(engine):
        raise CannotAnswer("What answers here is behind a server and only takes chats.", field="prompt")
    check_ids(engine, asked.prompt_ids, "prompt")
    ids = [*asked.prompt_ids, *engine.tokenize(asked.prompt or "", special=True)]
    begin = engine.begin_token
    if begin is not None and ids[:1] != [begin]:
        ids.insert(0, begin)
    if not ids:
        raise CannotAnswer("The prompt is empty. Give at least one word.", field="prompt")
    if len(ids) >= engine.info.context:
        raise TooLong(f"The prompt has {len(ids)} tokens, and the model takes {engine.info.context}.", field="prompt")
    return Prompt(tuple(ids))


def _put_tokens(made: list[Message], replies: Sequence[StoredMessage | None], sha256: str) -> None:
    """What this model wrote goes in as the very tokens it wrote."""
    first = len(made) - sum(message.role != "system" for message in made)
    for index, reply in enumerate(replies):
        if reply is not None and reply.role == "assistant" and sha256 and (tokens := written(reply, sha256)):
            made[first + index] = Message("assistant", reply.content, token_ids=tokens)
