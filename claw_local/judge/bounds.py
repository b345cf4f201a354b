"""What a learning run leaves out: secrets, and more rewards than one chat or one day may bring.

Praise for a refusal is never a reward, and the same words said again and again count a few times only. What is left out
keeps its hint: a wish is held to by what is verified, not by how often it was said. It must never change the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..adapters.qualities import is_refusal
from ..signals.quoted import spoken
from ..signals.turns import Turn
from ..store import StoredMessage
from .filters import has_secret

SAME_WORDS = 3
"""So often the same next state is rewarded in one chat."""


def bounded(turns: Sequence[Turn], *, per_chat: int, per_day: int) -> list[Turn]:
    """The turns, those beyond the bounds without a reward. What came first counts first, an edit before all.

    Args:
        per_chat: most rewards that one chat brings.
        per_day: most rewards that one day brings, UTC, over all chats.
    """
    chats: Counter[int] = Counter()
    days: Counter[str] = Counter()
    words: Counter[tuple[int, str]] = Counter()
    kept: dict[int, Turn] = {}
    for turn in sorted(turns, key=lambda turn: (not turn.demonstration, turn.reply.id)):
        if not turn.reward:
            kept[turn.reply.id] = turn
            continue
        chat, day = turn.reply.chat_id, turn.reply.created_at[:10]
        said = (chat, _same(turn))
        refused = turn.reward > 0 and is_refusal(turn.reply.content)
        full = chats[chat] >= per_chat or days[day] >= per_day or (said[1] and words[said] >= SAME_WORDS)
        if refused or full:
            kept[turn.reply.id] = replace(turn, score=0, advantage=None if turn.advantage is None else 0.0)
            continue
        chats[chat] += 1
        days[day] += 1
        words[said] += 1
        kept[turn.reply.id] = turn
    return [kept[turn.reply.id] for turn in turns]


def without_secrets(turns: Sequence[Turn]) -> list[Turn]:
    """Those in which no key, password, card or account number stands, neither in the reply nor in what led to it: what
    the weights learn cannot be taken out of them by looking."""
    known: dict[int, bool] = {}

    def clean(message: StoredMessage) -> bool:
        if message.id not in known:
            known[message.id] = not has_secret(message.content)
        return known[message.id]

    return [
        turn
        for turn in turns
        if all(map(clean, (*turn.history, turn.reply)))
        and not has_secret(turn.hint)
        and not has_secret(turn.demonstration)
    ]


def _same(turn: Turn) -> str:
    """What was said next, so that small changes make no difference; "" if it was a thumb alone."""
    if turn.next_state is None or turn.next_state.role != "user":
        return ""
    return " ".join("".join(c for c in spoken(turn.next_state.content).casefold() if c.isalpha() or c == " ").split())
