"""What the person likes, read from the store: their wishes, and how replies were received.

It must never know what a check tests.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..signals.preferences import Preference, preferences
from ..signals.turns import Turn, pair_some
from ..store import Store

DENIED = "denied-likes"
LOOKED_AT = 200
"""Newest judged replies that are looked at: tastes change, and what is long ago says little."""


def likes(store: Store, hints: Sequence[str]) -> list[Preference]:
    """From the hints that hold now, oldest first, and from the newest replies that were reacted to."""
    return likes_of(pair_some(store, store.signals.newest_judged(LOOKED_AT)), hints, denied=denied(store))


def likes_of(turns: Sequence[Turn], hints: Sequence[str], *, denied: Sequence[str]) -> list[Preference]:
    """From turns at hand. Of an edited reply the person's own text was accepted, and the model's rejected."""
    demonstrated = [turn for turn in turns if turn.demonstration]
    # A call of a tool says nothing of how answers should look.
    plain = [turn for turn in turns if not turn.demonstration and not turn.called]
    accepted = [turn.reply.content for turn in plain if (turn.score or 0) > 0]
    rejected = [turn.reply.content for turn in plain if (turn.score or 0) < 0]
    return preferences(
        hints,
        [*accepted, *(turn.demonstration for turn in demonstrated)],
        [*rejected, *(turn.reply.content for turn in demonstrated)],
        denied=denied,
    )


def denied(store: Store) -> list[str]:
    """What the person said is not theirs, in the plain words of the checks."""
    found: list[str] = json.loads(store.flags.get(DENIED) or "[]")
    return found


def deny(store: Store, words: str) -> None:
    """This is not what the person likes: never infer it again, until `allow`."""
    with store.database.write():
        store.flags.set(DENIED, json.dumps(sorted({*denied(store), words})))


def allow(store: Store, words: str) -> None:
    """Take back `deny`."""
    with store.database.write():
        store.flags.set(DENIED, json.dumps(sorted({*denied(store)} - {words})))
