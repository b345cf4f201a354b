"""A flag in the store that tells every open program to make its judge anew: an exam was taken, an adapter trained.

It must never know what changed.
"""

from __future__ import annotations

from ..store import Store

_CHANGED = "judge.changed"


def state(store: Store) -> str:
    """Another text than before, once `note_change` was called by anyone."""
    return store.flags.get(_CHANGED)


def note_change(store: Store) -> None:
    """Let every open program make its judge anew before it judges next."""
    with store.database.write():
        store.flags.set(_CHANGED, str(int(state(store) or "0") + 1))
