"""A judge that is asked in words, several times, and the majority holds: for models that do not tell how likely their
words are (DESIGN §4). It must never know the store or what is learned from it.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..engine.base import ChatEngine, Message
from ..errors import JudgeError
from ..language import _
from ..signals.attached import own_words
from ..signals.quoted import spoken
from . import asking, tools
from .calibration import CONFIDENCE, SCORES, VERDICTS, VerdictName
from .directing import direct
from .saying import TIMEOUT_S, say
from .verdict import Identity, Score, Verdict

VOTES = 3
"""Votes where the settings do not say how many."""

Read = TypeVar("Read")


class VotingJudge:
    """Judges by votes of a model that is only spoken to. Implements `AnyJudge`.

    Args:
        engine: a model behind a server, or one here (then the chat's KV and adapters are not touched).
        votes: m, how often each question is asked; 1 asks once, without chance.
        confidence: least share of the votes for good or bad.
        timeout_s: longest that one vote may take.
        adapter: SHA-256 of the engine's judge's adapters; "" without one.
        writes_hints: whether its own words may be the hint.
    """

    def __init__(
        self,
        engine: ChatEngine,
        *,
        votes: int = VOTES,
        confidence: float = CONFIDENCE,
        timeout_s: float = TIMEOUT_S,
        adapter: str = "",
        writes_hints: bool = True,
    ) -> None:
        self._engine = engine
        self._votes = votes
        self._confidence = confidence
        self._timeout_s = timeout_s
        self._writes_hints = writes_hints
        self._identity = Identity(engine.info.sha256 or engine.info.name, adapter, version(votes))

    @property
    def identity(self) -> Identity:
        return self._identity

    def judge(
        self,
        question: str,
        reply: str,
        next_text: str,
        next_role: str = "user",
        cancel: threading.Event | None = None,
        *,
        working: bool = False,
    ) -> Verdict:
        """See `AnyJudge.judge`. Of the votes' hints, the longest that passes every filter is kept."""
        version = self._identity.version
        if next_role != "user":
            score = tools.outcome(next_text)  # Nothing a tool says is ever a hint.
            return Verdict(score, _certain(score), "", "", False, [], version)
        question, next_text = own_words(question), spoken(next_text)
        if not next_text.strip():
            return Verdict(0, _certain(0), "", "", False, [], version)
        votes = self._poll(
            asking.verdict_prompt(question, reply, next_text), asking.VERDICT_SHAPE, asking.read_vote, cancel
        )
        name, shares = majority([vote.verdict for vote in votes])
        score = SCORES[name] if shares[name] >= self._confidence else 0
        offered = [vote.hint for vote in votes if vote.score == score] if self._writes_hints else []
        direction = direct(score, next_text, reply, offered)
        return Verdict(
            score,
            {verdict: round(share, 4) for verdict, share in shares.items()},
            direction.hint,
            direction.scope,
            bool(direction.candidate),
            list(direction.refused),
            version,
            direction.candidate,
            tuple(vote.score for vote in votes),
            direction.written,
            direction.dropped,
        )

    def read_ahead(self, question: str, reply: str, cancel: threading.Event | None = None) -> None:
        """Nothing: its prompt begins with what everything has in common, and ends with the message."""

    def follows(self, hint: str, reply: str, *, cancel: threading.Event | None = None) -> float:
        """Share of the votes for "yes"; see `AnyJudge.follows`."""
        votes = self._poll(asking.follows_prompt(hint, reply), asking.FOLLOWS_SHAPE, asking.read_follows, cancel)
        return sum(votes) / len(votes)

    def _poll(
        self,
        messages: Sequence[Message],
        shape: str,
        read: Callable[[str], Read | None],
        cancel: threading.Event | None,
    ) -> list[Read]:
        """The votes that have the shape. Raises JudgeError: they are half of all at most."""
        votes: list[Read] = []
        for number in range(self._votes):
            text = say(
                self._engine,
                messages,
                shape,
                temperature=0.7 if self._votes > 1 else 0.0,
                seed=number + 1,
                timeout_s=self._timeout_s,
                cancel=cancel,
            )
            vote = read(text)
            if vote is not None:
                votes.append(vote)
            elif (number + 1 - len(votes)) * 2 >= self._votes:
                break  # What is still to come cannot make a majority any more.
        if len(votes) * 2 <= self._votes:
            raise JudgeError(
                _(
                    "The judge {name} gave no answer that is a verdict, so the turn waits. A "
                    "larger model understands the question; judge.model names another one.",
                    name=self._engine.info.name,
                )
            )
        return votes


def version(votes: int) -> str:
    """Changes whenever the questions, the shapes or the number of votes do."""
    texts = [*asking.verdict_prompt("", "", ""), *asking.follows_prompt("", "")]
    parts = [message.content for message in texts] + [asking.VERDICT_SHAPE, asking.FOLLOWS_SHAPE]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return f"votes-{asking.FORMAT}x{votes}-{digest[:8]}"


def majority(votes: Sequence[VerdictName]) -> tuple[VerdictName, dict[str, float]]:
    """The verdict with the most votes, a tie being neutral, and each verdict's share.

    Raises:
        ValueError: there are no votes.
    """
    if not votes:
        raise ValueError("no votes")
    counts = Counter(votes)
    shares: dict[str, float] = {verdict: counts[verdict] / len(votes) for verdict in VERDICTS}
    (first, most), *others = counts.most_common()
    tied = bool(others) and others[0][1] == most
    return "neutral" if tied else first, shares


def _certain(score: Score) -> dict[str, float]:
    return {verdict: float(SCORES[verdict] == score) for verdict in VERDICTS}
