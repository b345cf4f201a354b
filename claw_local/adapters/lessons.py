"""From stored turns to token ids: what the trainer learns from, and what the gate asks. It must never decide.

Prompts are rendered through the engine, with the replies as the very tokens the model wrote.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ..engine.base import Engine
from ..engine.tool_forms import ToolSpec
from ..engine.tool_prompts import in_words, rendered
from ..memory import fast
from ..memory.prompt import prompt_messages
from ..signals.turns import Turn
from ..store import Hint, Store

PROMPT_TOKENS = 768
"""Longest prompt that is trained on; older turns of a longer chat are left out."""


@dataclass(frozen=True)
class Lesson:
    """A turn as token ids.

    Attributes:
        turn: where it comes from.
        prompt_ids: [T] the prompt without hints: what the policy must do well on.
        hinted_ids: [T'] the prompt with the wishes in it: what the teacher sees; None if there are none.
        variant: whether the question is not the person's, for practice: the turn's reply is no answer to it.
    """

    turn: Turn
    prompt_ids: tuple[int, ...]
    hinted_ids: tuple[int, ...] | None
    variant: bool = False


def lasting_hints(store: Store, engine: Engine, budget_tokens: int) -> list[Hint]:
    """The wishes that hold in every chat, oldest first; also those already learned, so that they stay so."""
    return fast.choose(
        store,
        chat_id=None,
        budget_tokens=budget_tokens,
        count=lambda text: len(engine.tokenize(text)),
        learned=True,
    )


def lessons_of(store: Store, engine: Engine, turns: Sequence[Turn], hints: Sequence[str]) -> list[Lesson]:
    """Render turns. The teacher of a turn sees the hints that hold everywhere, and the turn's own."""
    found = []
    for turn in turns:
        wishes = [*hints, *_own_wishes(turn, hints)]
        plain = _prompt_ids(store, engine, turn, [])
        hinted = _prompt_ids(store, engine, turn, wishes) if wishes else None
        if plain is not None:
            found.append(Lesson(turn, plain, hinted))
    return found


def _own_wishes(turn: Turn, hints: Sequence[str]) -> list[str]:
    wishes = []
    if turn.hint and not any(fast.replaces(hint, turn.hint) for hint in hints):
        wishes.append(turn.hint)
    if turn.demonstration:
        # The same model, shown the text the person put in place of its own, is the teacher (SDFT, arXiv 2601.19897).
        wishes.append(
            f'This is an answer I would like: "{turn.demonstration}" Answer in your own words in the same way'
        )
    return wishes


def _prompt_ids(store: Store, engine: Engine, turn: Turn, hints: Sequence[str]) -> tuple[int, ...] | None:
    """None: even the last message alone is too long to train on."""
    system = store.chats.get(turn.reply.chat_id).system
    listed = store.tool_calls.toolset(turn.reply.toolset_id)
    tools = [ToolSpec(*told) for told in json.loads(listed)] if listed else []
    history = list(turn.history)
    while history:
        messages = prompt_messages(system, history, hints, model_sha256=engine.info.sha256, in_words=in_words(engine))
        ids = rendered(engine, messages, tools).token_ids
        if len(ids) <= PROMPT_TOKENS:
            return ids
        # Drop up to the second question: what is left begins with one, and no task loses its beginning.
        second = (n for n, message in enumerate(history) if n and message.role == "user")
        history = history[next(second, len(history)) :]
    return None
