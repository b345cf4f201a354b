"""Replies of the embedded model, with and without a wish in the prompt. It must never label them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from claw_local.engine.base import Message, Sampling
from claw_local.engine.llama_cpp import LlamaCppEngine
from claw_local.memory.fast import with_hints

LONGEST = 100
"""Tokens of a reply. What was cut off there loses its last, unfinished sentence."""
_UNFINISHED = re.compile(r"(?<=[.!?])\s+[^.!?]*$|\n[^\n]*$")


@dataclass(frozen=True)
class Drawn:
    """A reply and what it answered. `wish`: the name of the wish that stood in the prompt, "" if none did."""

    question: str
    wish: str
    reply: str


def draw(engine: LlamaCppEngine, tasks: Sequence[tuple[str, str, str]], *, seed: int) -> list[Drawn]:
    """One reply for each (question, name of a wish, its wording); empty replies are left out."""
    prompts = [
        engine.render([Message("user", with_hints(question, [hint] if hint else []))]).token_ids
        for question, _, hint in tasks
    ]
    made = engine.generate_many(prompts, Sampling(max_tokens=LONGEST, temperature=0.8, seed=seed))
    found = []
    for (question, wish, _), one in zip(tasks, made, strict=True):
        text = one.text.strip()
        if one.finish_reason == "length":
            text = _UNFINISHED.sub("", text).strip()
        if len(text.split()) >= 4:
            found.append(Drawn(question, wish, text))
    return found
