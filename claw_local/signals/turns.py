"""Turns: each reply paired with its next state, and what that makes it worth. It must never know how signals are made.

Source: OpenClaw-RL (arXiv 2603.10165), §3: the next user or tool message is the signal about the reply before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..store import Signal, Store, StoredMessage
from ..store.records import Split
from .trajectories import trajectories, worths

HELD_OUT_SHARE = 0.25

PRECEDENCE: tuple[str, ...] = ("thumb", "edit", "tool", "regenerate", "judge")


@dataclass(frozen=True)
class Turn:
    """A reply with what came before and after it.

    Attributes:
        history: the branch up to the question, oldest first; its last message is the question.
        reply: the assistant message.
        next_state: the user or tool message that followed, None if nothing did.
        score: -1, 0, +1, or None if nothing is known about it.
        hint: how it should have been, "" if nobody said.
        demonstration: the text the person put in its place, "" if they did not edit it.
        only_turn: whether it is the only one of its session.
        step: which step of its trajectory it was, from 0; None for a turn without tools.
        advantage: what it was worth as that step; None where the task's outcome is not known.
    """

    history: tuple[StoredMessage, ...]
    reply: StoredMessage
    next_state: StoredMessage | None
    score: int | None
    hint: str
    demonstration: str
    only_turn: bool
    step: int | None = None
    advantage: float | None = None

    @property
    def question(self) -> str:
        """What the person said: before the steps of a task, at its beginning."""
        asked = (message for message in reversed(self.history) if message.role == "user")
        return next(asked, self.history[-1]).content

    @property
    def working(self) -> bool:
        """Whether the assistant had tools there."""
        return had_tools(self.reply, self.history)

    @property
    def called(self) -> bool:
        """Whether the reply called a tool, which answered."""
        return self.next_state is not None and self.next_state.role == "tool"

    @property
    def reward(self) -> float | None:
        """What the reply is rewarded with: its advantage as a step where it is one, else its score; None: unknown."""
        return self.advantage if self.advantage is not None else self.score

    @property
    def split(self) -> Split:
        """Train or held-out. The gate asks whole questions: of tasks with tools no step is held out."""
        return "train" if self.step is not None else split_of(self.question)

    @property
    def is_lesson(self) -> bool:
        """Whether anything can be learned from it: a reward other than 0, a hint or a demonstration."""
        return bool(self.reward) or bool(self.hint) or bool(self.demonstration)


def had_tools(reply: StoredMessage, history: Sequence[StoredMessage]) -> bool:
    """Whether there were tools when a reply was written: it was told of some, or one has answered before."""
    return bool(reply.toolset_id) or any(message.role == "tool" for message in history)


def split_of(question: str) -> Split:
    """Train or held-out, by a hash of the question: the same question never stands on both sides."""
    digest = hashlib.sha256(" ".join(question.lower().split()).encode()).digest()
    return "held-out" if int.from_bytes(digest[:4], "big") / 2**32 < HELD_OUT_SHARE else "train"


def combine(signals: Sequence[Signal]) -> tuple[int | None, str]:
    """One score and one hint from the signals that count for one reply.

    The first source in `PRECEDENCE` that says something decides the score: a person's thumb or edit before a tool's
    outcome, that before the judge. The hint is that of the highest source that has one.
    """
    by_source = {signal.source: signal for signal in signals if signal.state == "active"}
    ranked = [by_source[source] for source in PRECEDENCE if source in by_source]
    score = ranked[0].score if ranked else None
    hint = next((signal.hint for signal in ranked if signal.hint), "")
    return score, hint


def pair(store: Store) -> list[Turn]:
    """Every reply that may teach, with its next state, oldest first."""
    found = _pair(store, store.messages.teaching_replies())
    if not any(turn.called for turn in found):
        return found
    votes = {
        reply_id: signal.votes
        for reply_id, signals in store.signals.of([turn.reply.id for turn in found]).items()
        for signal in signals
        if signal.votes
    }
    worth = worths(trajectories(found, votes))
    return [
        replace(turn, step=worth[turn.reply.id][0], advantage=worth[turn.reply.id][1])
        if turn.reply.id in worth
        else turn
        for turn in found
    ]


def pair_some(store: Store, message_ids: Sequence[int]) -> list[Turn]:
    """The same for these replies alone, also those of a model behind a server: they give hints, but no training."""
    return _pair(store, store.messages.teaching_replies(message_ids, with_tokens=False))


def _pair(store: Store, replies: Sequence[StoredMessage]) -> list[Turn]:
    signals = store.signals.of([reply.id for reply in replies])
    per_chat: dict[int, int] = {}
    for reply in replies:
        per_chat[reply.chat_id] = per_chat.get(reply.chat_id, 0) + 1
    turns = []
    for reply in replies:
        history = store.messages.branch(reply.parent_id)
        if not history or history[-1].role not in ("user", "tool"):
            continue
        following = store.messages.next_states(reply.id)
        score, hint = combine(signals[reply.id])
        turns.append(
            Turn(
                history=tuple(history),
                reply=reply,
                next_state=following[0] if following else None,
                score=score,
                hint=hint,
                demonstration=_demonstration(store, reply, signals[reply.id]),
                only_turn=per_chat[reply.chat_id] == 1,
            )
        )
    return turns


def waiting(store: Store) -> list[Turn]:
    """Turns whose next state has come but which no judge has read yet."""
    turns = _pair(store, store.messages.teaching_replies(with_tokens=False))
    signals = store.signals.of([turn.reply.id for turn in turns])
    # What a tool returned has been read where it was called.
    read = ("judge", "tool")
    judged = {turn.reply.id for turn in turns if any(signal.source in read for signal in signals[turn.reply.id])}
    return [turn for turn in turns if turn.next_state is not None and turn.reply.id not in judged]


def _demonstration(store: Store, reply: StoredMessage, signals: Sequence[Signal]) -> str:
    if not any(signal.source == "edit" for signal in signals):
        return ""
    edits = [
        other for other in store.messages.siblings(reply.id) if other.role == "assistant" and not other.response_ids
    ]
    return edits[-1].content if edits else ""
