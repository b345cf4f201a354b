"""What judges have in common: what one is called, what it is asked, and what it says. It must never judge.

A judge has two questions: what does the next message say of a reply ("next"), and does a reply follow a hint
("follows")?
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Literal, Protocol

Score = Literal[-1, 0, 1]


@dataclass(frozen=True)
class Verdict:
    """What one reply was worth.

    Attributes:
        score: -1 bad, 0 neutral or not sure, +1 good.
        probabilities: of "good", "neutral" and "bad"; they add up to 1. Where votes were cast, their shares.
        hint: how the reply should have been; "" if nothing that may be kept was said of that.
        scope: "everywhere" (form and manner), "turn" (this turn's content), "" without a hint.
        directive: whether the message said how the answer should be, even if no filter let it through.
        filters: names of the filters that refused the hint.
        version: which examples, words and rules judged.
        candidate: the hint before the filters; "" if there was none.
        votes: single votes, where the judge was asked several times.
        written: whether the hint is in the judge's words; else it is in the person's.
        dropped: hints in the judge's words that were not taken, each with the filters that refused it.
    """

    score: Score
    probabilities: dict[str, float]
    hint: str
    scope: str
    directive: bool
    filters: list[str] = field(default_factory=list)
    version: str = ""
    candidate: str = ""
    votes: tuple[int, ...] = ()
    written: bool = False
    dropped: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Identity:
    """Which judge it is: one exam holds for exactly this.

    Attributes:
        model: SHA-256 of its file, or its name behind a server.
        adapter: SHA-256 of its adapters; "" without one.
        version: of its prompts, examples and words.
    """

    model: str
    adapter: str
    version: str


class AnyJudge(Protocol):
    """Whatever can judge. Calls may come from any thread."""

    @property
    def identity(self) -> Identity: ...

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
        """Judge `reply`, which answered `question`, by the message that followed it. `working`: the assistant had tools
        there, so that the person may ask for the next piece of work instead of saying anything about the reply.

        Raises:
            Cancelled: `cancel` was set before it was done.
            JudgeError: it took too long, or gave nothing that is a verdict. EngineError, ModelError: its model failed.
        """
        ...

    def read_ahead(self, question: str, reply: str, cancel: threading.Event | None = None) -> None:
        """Do now what can be done before the next message is there. It may do nothing. Raises as `judge` does."""
        ...

    def follows(self, hint: str, reply: str, *, cancel: threading.Event | None = None) -> float:
        """Probability that the reply follows the hint, 0 to 1. Raises as `judge` does."""
        ...
