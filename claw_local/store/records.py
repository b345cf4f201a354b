"""The rows of the database as typed, frozen records. They must never know how they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

MessageState = Literal["done", "streaming", "interrupted", "failed"]
TurnType = Literal["main", "side"]
SignalSource = Literal["judge", "thumb", "edit", "regenerate", "tool", "copy"]
SignalState = Literal["active", "waiting", "superseded"]
HintScope = Literal["everywhere", "chat", "turn"]
HintState = Literal["active", "consolidated", "dropped"]
AdapterState = Literal["candidate", "active", "retired", "rejected"]
RunState = Literal["running", "done", "failed", "stopped"]
Split = Literal["train", "held-out"]


@dataclass(frozen=True)
class Chat:
    """One conversation. `learn`: may it teach? `head_id`: last message of the branch that is shown."""

    id: int
    title: str
    model: str
    system: str
    learn: bool
    archived: bool
    head_id: int | None
    created_at: str
    updated_at: str


@dataclass(frozen=True)
class StoredMessage:
    """One message of a chat's tree.

    Attributes:
        parent_id: the message before it; None for the first.
        prompt_ids: [T] tokens the reply was sampled after (assistant messages only).
        response_ids: [R] sampled tokens, the end-of-turn token included.
        logprobs: [R] their log-probabilities in nats under the policy and sampling that wrote them.
        adapter_id: the adapter that wrote it; 0 is the base model.
        hint_ids: hints that were in the prompt.
        learn: may it teach? What was written while learning was off may not.
        state: a reply is "streaming" while a live process writes it and "interrupted" if that process ended first.
    """

    id: int
    chat_id: int
    parent_id: int | None
    role: str
    content: str
    state: MessageState
    turn_type: TurnType = "main"
    learn: bool = True
    prompt_ids: tuple[int, ...] = ()
    response_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    sampling: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    model_sha256: str = ""
    adapter_id: int = 0
    hint_ids: tuple[int, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    finish_reason: str = ""
    created_at: str = ""


@dataclass(frozen=True)
class Signal:
    """What was made known about one assistant message. `probabilities`: the judge's, by verdict word."""

    id: int
    message_id: int
    source: SignalSource
    score: int
    hint: str
    probabilities: dict[str, float]
    judge_version: str
    state: SignalState
    created_at: str


@dataclass(frozen=True)
class Hint:
    """One entry of fast memory. `message_id` is the reply it corrects, None if the person typed it in."""

    id: int
    text: str
    message_id: int | None
    chat_id: int | None
    scope: HintScope
    state: HintState
    uses: int
    created_at: str


@dataclass(frozen=True)
class SampleRecord:
    """One assistant message that the trainer may use."""

    message_id: int
    split: Split
    score: int | None
    hint: str
    times_used: int


@dataclass(frozen=True)
class AdapterRecord:
    """One personal adapter. `lineage`: the messages that made it; `sha256`: its files' hashes by name."""

    id: int
    parent_id: int
    name: str
    model_sha256: str
    architecture: str
    peft_dir: str
    gguf_path: str
    sha256: dict[str, str]
    recipe: dict[str, Any]
    metrics: dict[str, Any]
    lineage: tuple[int, ...]
    state: AdapterState
    reason: str
    created_at: str


@dataclass(frozen=True)
class Run:
    """One training run. `progress` from 0 to 1; `result` as `learn now --json` prints it."""

    id: int
    adapter_id: int | None
    state: RunState
    phase: str
    progress: float
    detail: str
    process: str
    result: dict[str, Any]
    started_at: str
    finished_at: str
