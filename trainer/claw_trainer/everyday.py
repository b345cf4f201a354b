"""Everyday questions that come with the package, to practise the wishes on that hold everywhere.

A dozen corrected questions are few: what is practised on them alone is learned for them, and for less of what is
asked next. "A hint given once holds for other prompts in its scope" (DESIGN §5). They are for practice only: the gate's
questions are others.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources

import numpy as np

from claw_local.adapters.lessons import Lesson, lessons_of
from claw_local.engine.base import Engine
from claw_local.signals.texts import language_of
from claw_local.store import Store

OTHERWISE = "en"
"""The language of the questions where that of the person's own is not known, or has none here."""


def shipped() -> dict[str, list[str]]:
    """The questions by language."""
    text = resources.files("claw_local.data").joinpath("practice_prompts.json").read_text("utf-8")
    found: dict[str, list[str]] = json.loads(text)
    return found


def everyday(
    store: Store, engine: Engine, lessons: Sequence[Lesson], hints: Sequence[str], *, count: int, seed: int
) -> list[Lesson]:
    """Up to `count` questions in the language that the person mostly asks in, with the wishes that hold everywhere.

    The same lessons, hints and seed give the same questions. Nothing without such wishes.

    Args:
        lessons: what the run trains on.
        hints: wishes that hold everywhere.
    """
    asked = [lesson for lesson in lessons if lesson.turn.step is None]
    if not asked or not hints:
        return []
    pool = shipped()
    spoken = Counter(language_of(lesson.turn.question) for lesson in asked)
    language = next((code for code, _ in spoken.most_common() if code in pool), OTHERWISE)
    chosen = np.random.default_rng(seed).permutation(pool[language])[:count]
    last = asked[-1].turn
    turns = [
        replace(
            last,
            history=(replace(last.history[-1], role="user", content=str(question)),),
            hint="",
            demonstration="",
        )
        for question in chosen
    ]
    return [replace(lesson, variant=True) for lesson in lessons_of(store, engine, turns, hints)]
