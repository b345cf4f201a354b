"""How often a wish is kept on held-out prompts. It must never teach: nothing asked here may be learned from.

The prompts are the product's own: each is put to `Assistant.ask` for one token, and the stored prompt tokens, with or
without the hints of fast memory, are then answered together through `Engine.generate_many`. So the answers are drawn
from the same distribution as the product's (same tokens, same adapter, same sampling), and all cores are used.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from claw_local import Assistant
from claw_local.adapters.qualities import repetition
from claw_local.adapters.registry import slots
from claw_local.engine.base import Engine, Sampling

from .eye import Prompt, words
from .persona import Wish


@dataclass(frozen=True)
class Survey:
    """Answers to held-out prompts, and what the person sees in them.

    Attributes:
        rate: share of answers that keep the whole wish.
        by_check: share that passes each of its checks.
        words: mean length.
        repetition: mean share of 4-word sequences that stood in the same answer before, as the gate counts them.
    """

    rate: float
    by_check: dict[str, float]
    words: float
    repetition: float
    answers: tuple[str, ...]


def ask_all(
    assistant: Assistant,
    engine: Engine,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    *,
    memory: bool,
    adapter: int | None = None,
    times: int = 1,
) -> list[str]:
    """One answer to each prompt, then a second to each, and so on.

    Args:
        engine: another engine on the assistant's model. It is left with the adapter that was asked.
        memory: whether the hints of fast memory stand in the prompts.
        adapter: its id; None is the one in use.
    """
    glance = replace(sampling, max_tokens=1)
    token_ids = []
    for prompt in prompts:
        first = assistant.ask(prompt.text, sampling=glance, adapter=adapter, learn=False, memory=memory)
        token_ids.append(assistant.store.messages.get(first.message_id).prompt_ids)
        engine.set_adapters(slots(assistant.adapters.get(first.adapter) if first.adapter else None))
        assistant.delete_chat(first.chat_id)
    return [generation.text for generation in engine.generate_many(token_ids * times, sampling)]


def look_at(answers: Sequence[str], prompts: Sequence[Prompt], wish: Wish) -> Survey:
    """What the person sees in the answers, given as `ask_all` returns them."""
    broken = [wish.broken(answer, prompts[n % len(prompts)]) for n, answer in enumerate(answers)]
    return Survey(
        rate=statistics.mean(not names for names in broken),
        by_check={c.name: statistics.mean(c.name not in names for names in broken) for c in wish.checks},
        words=statistics.mean(len(words(answer)) for answer in answers),
        repetition=statistics.mean(repetition(answer) for answer in answers),
        answers=tuple(answers),
    )
