"""The rows of the database as typed, frozen records. They must never know how they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ..language import _

MessageState = Literal["done", "streaming", "interrupted", "failed"]
TurnType = Literal["main", "side"]
SignalSource = Literal["judge", "thumb", "edit", "regenerate", "tool", "copy"]
SignalState = Literal["active", "waiting", "superseded", "copied", "withdrawn"]
"""A "copied" one stands in the copy of a chat: it is shown, and counts where it was given. A "withdrawn" one was taken
back by the person who gave it."""
HintScope = Literal["everywhere", "chat", "turn"]
HintState = Literal["active", "consolidated", "dropped"]
AdapterState = Literal["candidate", "active", "retired", "rejected", "forgotten"]
RunState = Literal["running", "paused", "done", "failed", "stopped", "dropped"]
StartedBy = Literal["person", "idle"]
Split = Literal["train", "held-out"]
ToolDecision = Literal["free", "once", "always", "option", "no"]
ToolState = Literal["done", "failed", "declined", "undone", "stopped"]
ExamQuestion = Literal["next", "follows"]


@dataclass(frozen=True)
class Chat:
    """One conversation.

    Attributes:
        model: what answers here, as `--model` takes it; empty is the model of the settings.
        learn: may it teach?
        head_id: last message of the branch that is shown.
        sampling: what this chat changes of the settings' sampling, by name.
        draft: what the person had typed and not sent yet.
        deleted_at: since when it waits to be removed for good; empty if it does not.
        origin, origin_id: where an imported chat came from; empty for one begun here.
        adapter_id: the adapter it keeps to; None is the one in use, 0 the base model.
        workspace: the folder its tools may touch; empty: it has no tools.
        always: what the person allowed its tools for the whole chat.
    """

    id: int
    title: str
    model: str
    system: str
    learn: bool
    archived: bool
    head_id: int | None
    created_at: str
    updated_at: str
    sampling: dict[str, Any] = field(default_factory=dict)
    draft: str = ""
    deleted_at: str = ""
    origin: str = ""
    origin_id: str = ""
    adapter_id: int | None = None
    workspace: str = ""
    always: tuple[str, ...] = ()


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
        system: the system prompt it was written under.
        toolset_id: the tools it was told of; 0 is none.
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
    system: str = ""
    created_at: str = ""
    toolset_id: int = 0

    @property
    def by_model(self) -> bool:
        """Whether a model wrote it here. The person's own version of a reply, and what was imported, names none."""
        return self.role == "assistant" and bool(self.model or self.response_ids or self.state != "done")


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool, and what became of it.

    Attributes:
        reply_id: the message that called; result_id: the tool's message with what it returned.
        arguments: as the model wrote them.
        title: what it was to do, in a few words.
        decision: "free" (it asks nobody), "once", "always", "option" (--allow) or "no".
        state: "done", "failed", "declined" or "undone".
        path, before, after_sha256: the file it wrote, what that held before (None: it was not there), and the hash of
            what it held after; "" where nothing was written.
        workspace: the folder it was called in.
    """

    id: int
    chat_id: int
    reply_id: int
    result_id: int
    name: str
    arguments: dict[str, Any]
    title: str
    decision: ToolDecision
    state: ToolState
    score: int
    path: str
    before: bytes | None
    after_sha256: str
    workspace: str
    created_at: str


@dataclass(frozen=True)
class Signal:
    """What was made known about one assistant message. `probabilities`: the judge's, by verdict word; `votes`: its
    single votes, -1, 0 or +1, where it was asked several times."""

    id: int
    message_id: int
    source: SignalSource
    score: int
    hint: str
    probabilities: dict[str, float]
    judge_version: str
    state: SignalState
    created_at: str
    votes: tuple[int, ...] = ()


@dataclass(frozen=True)
class ExamRecord:
    """How one judge did in the exam of one question. Judge: model, adapter and version of its prompt together.

    Attributes:
        model: SHA-256 of its file, or the name of a model behind a server.
        adapter: SHA-256 of its adapters; "" without one.
        question: "next" (what does the next message say of the reply?) or "follows" (does this reply follow this
            hint?).
        auc: how often a right case ranked above a wrong one. accuracy: at the best threshold, or of three verdicts.
        threshold: probability of "yes" that best told the exam's cases apart (second question).
        passed: whether its word on that question counts.
        groups: the AUC by sort of case; None where there is only one label.
    """

    model: str
    adapter: str
    version: str
    question: ExamQuestion
    auc: float
    accuracy: float
    threshold: float
    examples: int
    passed: bool
    groups: dict[str, float | None]
    seconds_per_example: float
    created_at: str = ""


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
    """One assistant message that the trainer may use. `step`: which of its trajectory it was, from 0, and `advantage`
    what it was worth there; None for a turn without tools."""

    message_id: int
    split: Split
    score: int | None
    hint: str
    times_used: int
    step: int | None = None
    advantage: float | None = None


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
class RunFailure:
    """One way in which a run went wrong.

    Attributes:
        kind: the error's class, or what ended the process.
        phase, step: where it was.
        inputs: fingerprint of what it worked on.
        words: for a person.
    """

    kind: str
    phase: str
    step: int
    inputs: str
    words: str
    at: str

    def same(self, other: RunFailure) -> bool:
        """Whether the other went wrong in the same way, on the same inputs."""
        mine, theirs = ((f.kind, f.phase, f.step, f.inputs) for f in (self, other))
        return mine == theirs


@dataclass(frozen=True)
class Run:
    """One training run.

    Attributes:
        state: "paused" is one that was left and can go on; "dropped" one that was left and no longer can.
        progress: from 0 to 1.
        result: as `learn now --json` prints it.
        inputs: fingerprint of what it works on; "" before that is known.
        checkpoint: where it can go on, as {"phase": ..., "step": steps done, "steps": of how many}; empty if nowhere.
            Phases: "start"; "planned": what it learns from is settled, and each answer drawn since is kept;
            "practising", "training", "gate".
        lineage: the replies it learns from.
        failures: how often it went wrong, oldest first.
        economy: how hard it saves memory: 0 not, 1 small micro-batches, 2 activations computed again,
            3 weights as in the file, 4 NF4 weights.
        fallbacks: each time it began to save more memory, and why, in words.
        asked: "leave" or "stop" while it is asked to.
        seconds_left: estimate; None if nothing is known.
        seen_at: last sign of life.
    """

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
    started_by: StartedBy = "person"
    inputs: str = ""
    checkpoint: dict[str, Any] = field(default_factory=dict)
    lineage: tuple[int, ...] = ()
    failures: tuple[RunFailure, ...] = ()
    economy: int = 0
    fallbacks: tuple[str, ...] = ()
    asked: str = ""
    seconds_left: float | None = None
    seen_at: str = ""

    @property
    def begins_anew(self) -> bool:
        """Whether going on with it is to begin anew: it was left before it was settled what it learns from."""
        return not self.checkpoint or self.checkpoint["phase"] == "start"

    @property
    def where(self) -> str:
        """Where it can go on, in words, such as "step 3 of 8"; "" if nowhere."""
        if not self.checkpoint:
            return ""
        done, of = int(self.checkpoint["step"]), int(self.checkpoint["steps"])
        known = {"gate": _("the gate"), "start": _("the beginning")}
        return known.get(self.checkpoint["phase"]) or _("step {step} of {steps}", step=done + 1, steps=of)


@dataclass(frozen=True)
class GivenMessage:
    """One message of a chat that comes from somewhere else.

    Attributes:
        key: which message of the source it is.
        parent: the key of the message before it; None for the first.
        signals: what was made known about it there, as (source, score, hint).
    """

    key: str
    parent: str | None
    role: str
    content: str
    created_at: str = ""
    model: str = ""
    state: MessageState = "done"
    finish_reason: str = ""
    signals: tuple[tuple[SignalSource, int, str], ...] = ()


@dataclass(frozen=True)
class GivenChat:
    """A chat that comes from somewhere else.

    Attributes:
        origin, origin_id: where it comes from, and which it is there.
        messages: the whole tree, each after its parent.
        head: the key of the last message of the branch that was shown; None is the last of all.
        learn: whether it may teach where it comes from; no: it may not here either.
        chat_id: the chat it was exported from, if that was this very store; 0 if not.
    """

    origin: str
    origin_id: str
    title: str
    messages: tuple[GivenMessage, ...]
    head: str | None = None
    system: str = ""
    model: str = ""
    created_at: str = ""
    updated_at: str = ""
    archived: bool = False
    learn: bool = True
    sampling: dict[str, Any] = field(default_factory=dict)
    chat_id: int = 0


@dataclass(frozen=True)
class Put:
    """What became of a given chat: `messages` were new. `deleted`: the person has deleted it, so it was left alone."""

    chat_id: int
    created: bool = False
    messages: int = 0
    deleted: bool = False
