"""What a run learns from, settled once at its beginning, so that a run that was left goes on with the same.

What was said is not written down again: the file has the replies' ids, and of each what it was worth then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from claw_local.adapters.lessons import Lesson, lasting_hints, lessons_of
from claw_local.engine.base import Engine
from claw_local.errors import LearnError
from claw_local.files import write_whole
from claw_local.judge.bounds import bounded, without_secrets
from claw_local.memory import likes
from claw_local.settings import Settings
from claw_local.signals import turns
from claw_local.signals.checks import Check
from claw_local.signals.preferences import Preference
from claw_local.store import Hint, Store


class NothingNew(LearnError):
    """There is nothing to learn from that was not learned already."""

    def __init__(self) -> None:
        super().__init__(
            "There is nothing new to learn yet. Chat on, and say what you would like different or what pleased you."
        )


@dataclass(frozen=True)
class Plan:
    """What a run learns from.

    Attributes:
        lessons: all of them.
        train, held_out: those that are trained on, and those for the gate.
        lasting: the wishes that hold in every chat.
        liked: what they and the person's reactions come down to.
        parent: id of the adapter that is trained further; 0 for the base.
        threads: threads that torch computes with: another number could round differently.
    """

    lessons: tuple[Lesson, ...]
    train: tuple[Lesson, ...]
    held_out: tuple[Lesson, ...]
    lasting: tuple[Hint, ...]
    liked: tuple[Preference, ...]
    parent: int
    threads: int

    @property
    def hints(self) -> list[str]:
        return [hint.text for hint in self.lasting]

    @property
    def checks(self) -> list[Check]:
        return [preference.check for preference in self.liked]

    @property
    def lineage(self) -> tuple[int, ...]:
        """The replies that are trained on, and those that are held out."""
        return tuple(sorted({lesson.turn.reply.id for lesson in self.lessons}))


def make_plan(store: Store, settings: Settings, engine: Engine, threads: int) -> Plan:
    """Look at all that was said, and settle what this run learns from.

    Raises:
        NothingNew: there is nothing.
    """
    used = {sample.message_id for sample in store.samples.list() if sample.times_used}
    # What another model wrote in a chat of its own is not this one's to learn from: its tokens mean something else.
    mine = [turn for turn in turns.pair(store) if turn.reply.model_sha256 == engine.info.sha256]
    mine = without_secrets(mine)
    learning = settings.learning
    mine = bounded(mine, per_chat=learning.rewards_per_chat, per_day=learning.rewards_per_day)
    everything = [turn for turn in mine if turn.is_lesson or turn.only_turn]
    if not any(turn.is_lesson and turn.reply.id not in used for turn in everything):
        raise NothingNew
    for turn in everything:
        store.samples.put(turn.reply.id, turn.split, turn.score, turn.hint, step=turn.step, advantage=turn.advantage)
    lasting = lasting_hints(store, engine, settings.memory.budget_tokens) if settings.memory.enabled else []
    hints = [hint.text for hint in lasting]
    liked = likes.likes_of(everything, hints, denied=likes.denied(store))
    lessons = lessons_of(store, engine, everything, hints)
    train = [lesson for lesson in lessons if lesson.turn.split == "train"]
    held_out = [lesson for lesson in lessons if lesson.turn.split == "held-out" and lesson.turn.is_lesson]
    if not any(lesson.turn.is_lesson for lesson in train):
        train, held_out = lessons, []  # Too few to hold any out: the shipped prompts decide alone.
    parent = store.adapters.active(engine.info.sha256)
    return Plan(
        lessons=tuple(lessons),
        train=tuple(train),
        held_out=tuple(held_out),
        lasting=tuple(lasting),
        liked=tuple(liked),
        parent=parent.id if parent else 0,
        threads=threads,
    )


def write_plan(file: Path, plan: Plan) -> str:
    """Keep the plan. Returns its fingerprint. Raises OSError."""
    train, held_out = ({lesson.turn.reply.id for lesson in part} for part in (plan.train, plan.held_out))
    lessons = [
        {
            "reply": lesson.turn.reply.id,
            "score": lesson.turn.score,
            "hint": lesson.turn.hint,
            "demonstration": lesson.turn.demonstration,
            "only_turn": lesson.turn.only_turn,
            "prompt_ids": lesson.prompt_ids,
            "hinted_ids": lesson.hinted_ids,
            "train": lesson.turn.reply.id in train,
            "held_out": lesson.turn.reply.id in held_out,
        }
        for lesson in plan.lessons
    ]
    liked = [{**asdict(one), "check": one.check.to_dict()} for one in plan.liked]
    rest = {"lasting": [asdict(hint) for hint in plan.lasting], "parent": plan.parent, "threads": plan.threads}
    data = json.dumps({"lessons": lessons, "liked": liked, **rest}).encode()
    write_whole(file, data)
    return hashlib.sha256(data).hexdigest()


def read_plan(file: Path, store: Store) -> Plan | None:
    """The plan that was kept there; None if there is none.

    Raises:
        LearnError: the file is damaged, or a reply in it may no longer teach.
    """
    try:
        kept = json.loads(file.read_text("utf-8"))
        ids = [int(entry["reply"]) for entry in kept["lessons"]]
        known = {turn.reply.id: turn for turn in turns.pair_some(store, ids)}
        if not known.keys() >= set(ids):
            raise LearnError(
                "Something that this paused run learns from was deleted, or may no longer teach. "
                "Start again: claw-local learn now"
            )
        lessons = [_lesson(entry, known[int(entry["reply"])]) for entry in kept["lessons"]]
        return Plan(
            lessons=tuple(lessons),
            train=_those(lessons, kept["lessons"], "train"),
            held_out=_those(lessons, kept["lessons"], "held_out"),
            lasting=tuple(Hint(**hint) for hint in kept["lasting"]),
            liked=tuple(Preference(**{**one, "check": Check.from_dict(one["check"])}) for one in kept["liked"]),
            parent=int(kept["parent"]),
            threads=int(kept["threads"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LearnError(
            f"What this paused run kept is damaged ({type(error).__name__}). Start again: claw-local learn now"
        ) from error


def _lesson(entry: dict[str, Any], turn: turns.Turn) -> Lesson:
    parts = {name: entry[name] for name in ("score", "hint", "demonstration", "only_turn")}
    hinted = entry["hinted_ids"]
    return Lesson(replace(turn, **parts), tuple(entry["prompt_ids"]), None if hinted is None else tuple(hinted))


def _those(lessons: Sequence[Lesson], entries: Sequence[dict[str, Any]], part: str) -> tuple[Lesson, ...]:
    return tuple(lesson for lesson, entry in zip(lessons, entries, strict=True) if entry[part])
