"""Tasks that adapt: easier and harder variants of the person's own, written by the model, kept if they are that.

RLAnything's rule for its environment (DESIGN §1): a variant is kept only if the success rate moves as meant. Variants
live in the run alone, and in its own folder until it ends: they never reach a chat, the store or the gate.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from claw_local.adapters.checking import fresh_sampling
from claw_local.adapters.lessons import Lesson, lessons_of
from claw_local.engine.base import AdapterSlot, Engine, Message, Sampling
from claw_local.files import write_whole
from claw_local.language import _
from claw_local.settings import Settings
from claw_local.signals.turns import Turn
from claw_local.store import Store

from .rewards import Rewards

Direction = Literal["easier", "harder"]
Report = Callable[[str, float, str], None]

ANSWERS = 3
"""Fresh answers from which a success rate is taken."""
LONGEST = 300
"""Characters of a variant."""
_JOINED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")
_WORD = re.compile(r"[^\W\d_]{4,}")
_LEADS = re.compile(
    r"^\s*(?:[-*•\d.)\s]*)(?:\*\*)?(?:(?:easier|harder|new|request|question|task|variant)\b[^:\n]{0,20}:)?", re.I
)

_EXAMPLE_ASKED = (
    "Request: How do I repair a bicycle tyre?\nWhat went wrong with the answer: it was too long.\n"
    "Write one {direction} request about the same thing."
)
_EXAMPLES: dict[Direction, str] = {
    "easier": "What do I need to repair a bicycle tyre?",
    "harder": "How do I repair a bicycle tyre on the road, in the rain, without a spare, step by step?",
}


@dataclass(frozen=True)
class Variant:
    """A lesson with the model's own question in place of the person's.

    Attributes:
        place: which of the tasks it was made from.
        lesson: for practice alone.
    """

    place: int
    direction: Direction
    lesson: Lesson


@dataclass(frozen=True)
class Varied:
    """What came of it.

    Attributes:
        lessons: the variants that were kept.
        counts: how many tasks were looked at, and of each direction how many were written and kept. No text: once the
            run has ended, what was made of the person's words is kept nowhere.
    """

    lessons: list[Lesson] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def kept_or_adapted(
    file: Path,
    store: Store,
    engine: Engine,
    lessons: Sequence[Lesson],
    rewards: Rewards,
    hints: Sequence[str],
    adapters: Sequence[AdapterSlot],
    settings: Settings,
    report: Report = lambda phase, fraction, detail: None,
) -> Varied:
    """What was kept there when the run began, or else `adapted` now, and kept: a run that goes on has the same tasks.

    Raises:
        OSError: it cannot be kept.
    """
    with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError):  # Damaged: they are made anew.
        return _read(json.loads(file.read_text("utf-8")), lessons)
    made = adapted(store, engine, lessons, rewards, hints, adapters, settings, report)
    entries = [
        {
            "reply": lesson.turn.reply.id,
            "question": lesson.turn.question,
            "prompt_ids": lesson.prompt_ids,
            "hinted_ids": lesson.hinted_ids,
        }
        for lesson in made.lessons
    ]
    write_whole(file, json.dumps({"variants": entries, "counts": made.counts}).encode())
    return made


def _read(kept: dict[str, Any], lessons: Sequence[Lesson]) -> Varied:
    turns = {lesson.turn.reply.id: lesson.turn for lesson in lessons}
    found = []
    for entry in kept["variants"]:
        hinted = entry["hinted_ids"]
        found.append(
            Lesson(
                _turned(turns[entry["reply"]], entry["question"]),
                tuple(entry["prompt_ids"]),
                None if hinted is None else tuple(hinted),
                variant=True,
            )
        )
    return Varied(found, dict(kept["counts"]))


def _turned(turn: Turn, question: str) -> Turn:
    asked = replace(turn.history[-1], content=question)
    return replace(turn, history=(*turn.history[:-1], asked), demonstration="")


def adapted(
    store: Store,
    engine: Engine,
    lessons: Sequence[Lesson],
    rewards: Rewards,
    hints: Sequence[str],
    adapters: Sequence[AdapterSlot],
    settings: Settings,
    report: Report = lambda phase, fraction, detail: None,
) -> Varied:
    """Easier and harder variants of the newest failed tasks, those that are so. Reads the store, never writes it.

    Args:
        lessons: what the run trains on.
        rewards: what an answer is worth; where nothing can tell, there are no variants.
        hints: wishes that hold everywhere.
        adapters: the policy as it is.
    """
    failed = [lesson for lesson in lessons if (lesson.turn.score or 0) < 0 and rewards.can_tell([lesson])]
    failed = failed[len(failed) - min(settings.learning.variants, len(failed)) :]
    if not failed:
        return Varied()
    report("practising", 0.05, _("tasks of yours, easier and harder"))
    engine.set_adapters(adapters)
    sampling = fresh_sampling(settings)
    before = success(engine, failed, rewards, sampling)
    wanted = [(n, way) for n, rate in enumerate(before) for way in directions(rate)]
    variants = write(store, engine, failed, wanted, hints, sampling)
    after = success(engine, [variant.lesson for variant in variants], rewards, sampling)
    kept = [
        variant
        for variant, rate in zip(variants, after, strict=True)
        if moved_as_meant(variant.direction, before[variant.place], rate)
    ]
    counts = {"tasks": len(failed)}
    for way in ("easier", "harder"):
        counts[f"{way}_written"] = sum(variant.direction == way for variant in variants)
        counts[f"{way}_kept"] = sum(variant.direction == way for variant in kept)
    return Varied([variant.lesson for variant in kept], counts)


def directions(rate: float) -> list[Direction]:
    """Where a success rate can move at all."""
    return [*(["easier"] if rate < 1 else []), *(["harder"] if rate > 0 else [])]  # type: ignore[list-item]


def moved_as_meant(direction: Direction, before: float, after: float) -> bool:
    """Whether a variant's success rate moved from the task's own to where it was meant to go."""
    return after > before if direction == "easier" else after < before


def success(engine: Engine, lessons: Sequence[Lesson], rewards: Rewards, sampling: Sampling) -> list[float]:
    """For each question the share of `ANSWERS` fresh answers whose reward is above 0; 0 where nothing tells."""
    answers = engine.generate_many([lesson.prompt_ids for lesson in lessons for _ in range(ANSWERS)], sampling)
    rates = []
    for n, lesson in enumerate(lessons):
        found = [rewards(lesson, one.text) for one in answers[n * ANSWERS : (n + 1) * ANSWERS]]
        rates.append(sum(reward is not None and reward > 0 for reward in found) / ANSWERS)
    return rates


def write(
    store: Store,
    engine: Engine,
    lessons: Sequence[Lesson],
    wanted: Sequence[tuple[int, Direction]],
    hints: Sequence[str],
    sampling: Sampling,
) -> list[Variant]:
    """Let the model write the variants; what is none is left out."""
    prompts = [engine.render(_asking(lessons[n].turn, way)).token_ids for n, way in wanted]
    texts = engine.generate_many(prompts, replace(sampling, max_tokens=60))
    found = []
    for (n, way), text in zip(wanted, texts, strict=True):
        turn = lessons[n].turn
        question = read(text.text)
        if question is None or not is_variant(turn.question, question):
            continue
        made = lessons_of(store, engine, [_turned(turn, question)], hints)
        found += [Variant(n, way, replace(lesson, variant=True)) for lesson in made]
    return found


def _asking(turn: Turn, direction: Direction) -> list[Message]:
    return [
        Message("user", _EXAMPLE_ASKED.format(direction=direction)),
        Message("assistant", _EXAMPLES[direction]),
        Message(
            "user",
            f"Request: {turn.question}\nWhat went wrong with the answer: {note(turn)}\n"
            f"Write one {direction} request about the same thing.",
        ),
    ]


def note(turn: Turn) -> str:
    """What the judge noted of a failed turn: the wish, else what the person said, else only that it failed."""
    said = turn.hint or (turn.next_state.content if turn.next_state is not None else "")
    return " ".join(said.split())[:LONGEST] or "it was not what I wanted."


def read(text: str) -> str | None:
    """The variant in what the model wrote: its first line that says something. None: there is none."""
    for line in text.splitlines():
        line = _LEADS.sub("", line, count=1).strip(" \t\"'“”*_")
        if len(line.split()) >= 3:
            return line if len(line) <= LONGEST else None
    return None


def is_variant(task: str, variant: str) -> bool:
    """Whether it is about the person's task, and another one: they share something that carries meaning, and differ in
    more than their marks."""
    mine, theirs = _meaning(task), _meaning(variant)
    return bool(mine & theirs or not mine) and _bare(task) != _bare(variant)


def _meaning(text: str) -> set[str]:
    """Longer words; pairs of characters where words are not set apart."""
    pairs = {run[n : n + 2] for run in _JOINED.findall(text) for n in range(len(run) - 1)}
    return pairs | set(_WORD.findall(_JOINED.sub(" ", text.lower())))


def _bare(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())
