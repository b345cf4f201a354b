"""Who answers: `ChatEngine`, which can chat, and `Engine`, which also has tokens, logits and adapters.

It must never know about the store, the judge or what is learned.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "cancelled"]
Logits = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Call:
    """A tool's call as a template takes it. `arguments`: what its JSON holds."""

    name: str
    arguments: Any
    id: str = ""


@dataclass(frozen=True)
class Message:
    """One message of a prompt.

    `token_ids`, where present, are the tokens the model itself wrote (without the end-of-turn token): they go into the
    prompt as they are, so that nothing the model wrote is ever tokenised again.

    Attributes:
        calls: what an assistant's message called, for a template that writes calls itself.
        name, call_id: which tool's result a tool's message is, and of which call.
    """

    role: Role
    content: str
    token_ids: tuple[int, ...] = ()
    calls: tuple[Call, ...] = ()
    name: str = ""
    call_id: str = ""


ToolText = Mapping[str, Any]
"""A tool as templates take it: {"type": "function", "function": {"name", "description", "parameters"}}."""


@dataclass(frozen=True)
class Sampling:
    """How to draw: see `SamplingSettings`. `seed` None means a fresh one for each reply."""

    max_tokens: int = 1024
    temperature: float = 0.7
    top_p: float = 0.95
    top_k: int = 40
    min_p: float = 0.0
    repeat_penalty: float = 1.1
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShapedSampling(Sampling):
    """Sampling of a text that has to be JSON of one shape.

    `schema` is that shape as JSON Schema, in text. llama.cpp keeps to it by a grammar (GBNF) made of it; a server is
    told it, and may be too old to heed it: whoever reads the text checks it all the same.
    """

    schema: str = ""


@dataclass(frozen=True)
class FormedSampling(ShapedSampling):
    """Sampling of a text that keeps to a grammar, or whose tokens are looked at.

    Attributes:
        grammar: GBNF, its rule `root` being the whole text, or with `triggers` what the text goes on with.
        triggers: patterns of a whole text so far; the grammar holds from the first group of the first one that
            matches. Without any it holds from the beginning.
        alternatives: how many of the likeliest tokens are noted beside each one drawn; -1 notes nothing.
    """

    grammar: str = ""
    triggers: tuple[str, ...] = ()
    alternatives: int = -1


@dataclass(frozen=True)
class Noted:
    """A token that was drawn, its log-probability in nats under the model itself (before temperature and filters), and
    the likeliest ones at that place, likeliest first."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class AdapterSlot:
    """A GGUF LoRA to apply, and how strongly (1.0 = as trained)."""

    path: Path
    scale: float = 1.0


@dataclass(frozen=True)
class ModelInfo:
    """What answers.

    Attributes:
        name: as it is shown and stored: a file's stem, or `ollama:NAME`, `openai:NAME`.
        path: the model file; `Path()` for a model behind a server.
        sha256: the file's hash; "" for a model behind a server, whose tokens and logits nobody here sees.
        parameters: how many weights; 0 if nobody says.
        context: longest prompt plus reply, in tokens.
        twin: hash of the file on this machine that a server runs the same model of, and whose adapters it takes.
    """

    name: str
    path: Path
    sha256: str
    architecture: str
    parameters: int
    context: int
    twin: str = ""

    @property
    def adapters_of(self) -> str:
        """The hash of the model whose adapters can be applied; "" if none can."""
        return self.sha256 or self.twin


@dataclass(frozen=True)
class Prompt:
    """A rendered chat.

    Attributes:
        token_ids: [T] prompt tokens, ending where the assistant begins to write; empty where a server makes them.
        dropped: how many of the oldest messages were left out because the chat is longer than the context.
        messages: what is sent to a server that makes the tokens itself; empty otherwise.
        marks: what stands around results of tools in it as common text, which a small model repeats; see `echoes`.
    """

    token_ids: tuple[int, ...]
    dropped: int = 0
    messages: tuple[Message, ...] = ()
    marks: tuple[str, ...] = ()


@dataclass
class Generation:
    """What one reply was made of; filled while it streams, whole when the iterator ends.

    Attributes:
        prompt_ids: [T] tokens of the prompt.
        response_ids: [R] sampled tokens, the end-of-turn token included if it was sampled.
        logprobs: [R] log-probability of each sampled token, in nats, under the *processed* distribution it was drawn
            from (after temperature, top-k, top-p, min-p, penalties).
        evaluated: prompt tokens that had to be computed (the rest came from the kept KV prefix).
        counted: (prompt, response) tokens as a server counted them, where there are no token ids.
        first_token_s, total_s: seconds from the call.
        noted: what `FormedSampling.alternatives` asked for, one for each token.
        lora: PEFT folder of the adapter that a server answers with; None for none.
        cut: whether something the model wrote was cut out of the text, which is then not what the tokens say.
    """

    prompt_ids: tuple[int, ...]
    sampling: Sampling
    dropped: int = 0
    response_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    text: str = ""
    evaluated: int = 0
    finish_reason: FinishReason = "stop"
    seed: int = 0
    first_token_s: float = 0.0
    total_s: float = 0.0
    counted: tuple[int, int] = (0, 0)
    noted: list[Noted] = field(default_factory=list)
    lora: Path | None = None
    cut: bool = False

    @property
    def prompt_tokens(self) -> int:
        return len(self.prompt_ids) or self.counted[0]

    @property
    def completion_tokens(self) -> int:
        return len(self.response_ids) or self.counted[1]


class ChatEngine(Protocol):
    """What can answer in a chat. Thread-safe. A model behind a server is this and no more."""

    @property
    def info(self) -> ModelInfo: ...

    def render(self, messages: Sequence[Message], *, reserve: int = 0) -> Prompt:
        """Apply the model's own chat template. Oldest turns (never the system message or the last message) are left out
        until the prompt plus `reserve` tokens for the reply fits the context. A server has the last word on what fits.

        Raises:
            EngineError: even the last message alone does not fit.
        """
        ...

    def generate(
        self, prompt: Prompt, sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> tuple[Generation, Iterator[str]]:
        """Begin a reply. Returns the record being filled and an iterator over its text as it comes.

        `cancel` stops it within one token, or one chunk of a server's (finish_reason "cancelled"). Here, only tokens
        beyond the KV prefix that is kept from the call before are evaluated. Text pieces are whole characters.
        """
        ...

    def close(self) -> None: ...


class Engine(ChatEngine, Protocol):
    """A model in this process, with all that judging and learning need. Calls from several threads queue; one computes
    at a time."""

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Tokens of plain text, without BOS. With `special`, control tokens written out in the text count as such."""
        ...

    def detokenize(self, token_ids: Sequence[int]) -> str: ...

    def token_bytes(self, token: int) -> bytes:
        """What a token adds to a text; nothing for a control token."""
        ...

    @property
    def vocabulary(self) -> int:
        """How many tokens there are; ids run from 0."""
        ...

    @property
    def begin_token(self) -> int | None:
        """The token each text begins with; None if there is none."""
        ...

    @property
    def chat_template(self) -> str:
        """The source of the model's own chat template; "" if it has none."""
        ...

    @property
    def takes_tools(self) -> bool:
        """Whether that template writes out tools and calls."""
        ...

    def render_tools(self, messages: Sequence[Message], tools: Sequence[ToolText], *, reserve: int = 0) -> Prompt:
        """As `render`, with tools that the template offers. Raises EngineError."""
        ...

    def embed(self, texts: Sequence[Sequence[int]]) -> list[list[float]]:
        """[N, D] vectors of length 1 of texts in tokens [N] of [T_n]: the mean of the base model's last states.

        Raises:
            EngineError: a text is empty or longer than the context, or there is not enough memory.
        """
        ...

    def generate_many(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> list[Generation]:
        """Sample one reply for each prompt, decoded together in one batch (prompts [N] of [T_n] tokens).

        Reply n is drawn with seed `sampling.seed + n` if a seed is given.
        """
        ...

    def logits(self, token_ids: Sequence[int], *, start: int) -> Logits:
        """[T - start, V] raw logits at positions start .. T-1 (row i predicts token start + i + 1), adapters set."""
        ...

    def next_logits(
        self, prefix: Sequence[int], suffix: Sequence[int], *, cancel: threading.Event | None = None
    ) -> Logits:
        """[V] raw logits after prefix + suffix, on the *base* model (no policy adapter). The KV of `prefix` is kept
        between calls in a sequence of its own; the chat's own KV is not touched.

        Raises:
            Cancelled: `cancel` was set before it was done.
        """
        ...

    def generate_aside(
        self, prompt: Prompt, sampling: Sampling, *, cancel: threading.Event | None = None
    ) -> Generation:
        """A whole text of the *base* model with the judge's own adapters, in the judge's sequence: the chat's KV and
        its adapters are not touched.

        Raises:
            Cancelled: `cancel` was set before it was done.
        """
        ...

    @property
    def replying(self) -> bool:
        """Whether a reply is being written now, or begins: judging waits for it."""
        ...

    def set_judge_adapters(self, adapters: Sequence[AdapterSlot]) -> None:
        """Judge (`next_logits`, `generate_aside`) with exactly these LoRAs from the next call on.

        Raises:
            AdapterError: as `set_adapters`.
        """
        ...

    def set_adapters(self, adapters: Sequence[AdapterSlot]) -> None:
        """Apply exactly these LoRAs from the next call on (none = the base). Files loaded once stay loaded.

        Raises:
            AdapterError: a file is missing, damaged, or does not fit the model; what was applied before stays.
        """
        ...


class Cancelled(Exception):
    """A computation was stopped on request. Never shown to a person."""


@runtime_checkable
class TakesLoras(Protocol):
    """An engine behind a server that can load a LoRA there."""

    def set_lora(self, folder: Path | None) -> None:
        """Answer with the LoRA in this PEFT folder from the next call on; None: without one."""


def has_tokens(engine: ChatEngine) -> TypeGuard[Engine]:
    """Whether an engine is more than a `ChatEngine`: then its replies can be learned from, and it can judge."""
    return bool(engine.info.sha256)
