"""What the person made known outright, as cases for the judge to learn from. It must never ask a judge.

A thumb says what a reply was worth, so it says what the next message should have been read as. An edit says that too;
and where a hint came with it, that the old text did not follow it and that the new one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..signals.attached import own_words
from ..signals.quoted import spoken
from ..signals.turns import Turn, pair_some
from ..store import Store
from ..store.records import ExamQuestion

MOST = 200
"""Newest replies with a thumb or an edit that are looked at: tastes change."""


@dataclass(frozen=True)
class Feedback:
    """One case.

    Attributes:
        message_id: the reply that the person spoke of.
        asked: which of the judge's questions it answers.
        question, reply: the turn.
        text: the next message ("next"), or the hint ("follows"), in the person's words.
        outcome: O, what the person made known: +1 good or it follows, -1 bad or it does not.
    """

    message_id: int
    asked: ExamQuestion
    question: str
    reply: str
    text: str
    outcome: Literal[-1, 1]


def explicit_feedback(store: Store) -> list[Feedback]:
    """The cases in the store, oldest first. Replies that may not teach, and those of deleted chats, give none."""
    ids = store.signals.spoken_of(MOST)
    signals = store.signals.of(ids)
    found: list[Feedback] = []
    for turn in pair_some(store, ids):
        said = {signal.source: signal for signal in signals[turn.reply.id]}
        explicit = said.get("thumb") or said.get("edit")
        if explicit is not None and explicit.score:
            outcome: Literal[-1, 1] = 1 if explicit.score > 0 else -1
            hints = [said[source].hint for source in ("thumb", "edit") if source in said and said[source].hint]
            found += _cases(turn, outcome, hints)
    return found


def _cases(turn: Turn, outcome: Literal[-1, 1], hints: Sequence[str]) -> list[Feedback]:
    reply, question = turn.reply, own_words(turn.question)
    cases: list[Feedback] = []
    if turn.next_state is not None and turn.next_state.role == "user":
        message = spoken(turn.next_state.content)
        if message.strip():
            cases.append(Feedback(reply.id, "next", question, reply.content, message, outcome))
    for hint in dict.fromkeys(hints):
        if outcome < 0:
            cases.append(Feedback(reply.id, "follows", question, reply.content, hint, -1))
        if turn.demonstration:
            cases.append(Feedback(reply.id, "follows", question, turn.demonstration, hint, 1))
    return cases
