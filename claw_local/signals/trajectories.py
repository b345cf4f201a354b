"""Trajectories: what the steps of one task were worth, once it is known what came of it. Turns in, numbers out.

Source: RLAnything, as DESIGN §4 states it. A session with tools is a trajectory: its steps are the replies between two
messages of the person, those that call tools and the one that answers. (A chat of ours may go on for months, so the
whole of it would be too long a session: what the person says in summer is no verdict on what was written in spring.)
With O the outcome and S_j the votes on step i, R_i = O + (λ/m) Σ_j S_ij; the advantage is R_i standardised across
trajectories at the same step index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .joint import step_advantages, step_reward

if TYPE_CHECKING:
    from .turns import Turn


@dataclass(frozen=True)
class Step:
    """One reply of a trajectory. `votes`: what was made known of this step alone, each -1 or +1."""

    reply_id: int
    votes: tuple[int, ...]


@dataclass(frozen=True)
class Trajectory:
    """One task from the person's message to the last reply, oldest step first.

    `outcome`: +1 or -1; None: nobody said, and no tool did.
    """

    steps: tuple[Step, ...]
    outcome: int | None


def trajectories(turns: Sequence[Turn], votes: Mapping[int, Sequence[int]]) -> list[Trajectory]:
    """The tasks in which tools were called, oldest first. Of several versions of one, the newest counts.

    Args:
        turns: replies that may teach, as `turns.pair` gives them.
        votes: the judge's single votes by reply, where it was asked several times.
    """
    by_reply = {turn.reply.id: turn for turn in turns}
    newest: dict[int, tuple[int, ...]] = {}
    for turn in turns:
        task, chain = _chain(turn)
        if len(chain) > 1 or turn.called:
            newest[task] = max(newest.get(task, ()), chain, key=lambda ids: ids[-1] if ids else 0)
    return [_trajectory(chain, by_reply, votes) for chain in newest.values()]


def worths(found: Sequence[Trajectory], lam: float = 1.0) -> dict[int, tuple[int, float | None]]:
    """(step index, advantage) of each reply; the advantage is None where nothing is known of its worth.

    A step index that only one trajectory has keeps its plain reward R_i, in [-1 - λ, 1 + λ].
    """
    known = [trajectory for trajectory in found if trajectory.outcome is not None]
    advantages = step_advantages([[step_reward(t.outcome or 0, step.votes, lam) for step in t.steps] for t in known])
    worth: dict[int, tuple[int, float | None]] = {}
    for trajectory in found:
        for index, step in enumerate(trajectory.steps):
            worth[step.reply_id] = (index, None)
    for trajectory, row in zip(known, advantages, strict=True):
        for index, (step, advantage) in enumerate(zip(trajectory.steps, row, strict=True)):
            worth[step.reply_id] = (index, advantage)
    return worth


def _chain(turn: Turn) -> tuple[int, tuple[int, ...]]:
    """Which message of the person a reply works for, and the replies since then, this one last."""
    task = 0
    chain: list[int] = []
    for message in turn.history:
        if message.role == "user":
            task, chain = message.id, []
        elif message.role == "assistant":
            chain.append(message.id)
    return task, (*chain, turn.reply.id)


def _trajectory(chain: Sequence[int], by_reply: Mapping[int, Turn], votes: Mapping[int, Sequence[int]]) -> Trajectory:
    last = by_reply.get(chain[-1])
    said = last.score if last is not None and not last.called and last.score else None
    steps = []
    for reply_id in chain:
        turn = by_reply.get(reply_id)
        own = tuple(vote for vote in votes.get(reply_id, ()) if vote)
        # What decides the outcome is not counted a second time as the last step's own score.
        score = turn.score if turn is not None and (said is None or turn is not last) else None
        steps.append(Step(reply_id, own or ((score,) if score else ())))
    # The person's last word; else what the tools said last, such as a test's verdict.
    outcome = said if said is not None else next((s.votes[-1] for s in reversed(steps) if s.votes), None)
    return Trajectory(tuple(steps), outcome)
