"""What replies were worth, one after the other: how it goes over time. It must never change anything."""

from __future__ import annotations

from dataclasses import dataclass

from ..store import Store
from .turns import PRECEDENCE


@dataclass(frozen=True)
class Scored:
    """One reply that was reacted to.

    Attributes:
        score: -1, 0 or +1 from the source that counts most, of those that speak for the person.
        adapter_id: what wrote it; 0 is the base model.
        created_at: when it was written.
    """

    message_id: int
    score: int
    adapter_id: int
    created_at: str


def over_time(store: Store, *, limit: int) -> list[Scored]:
    """The newest replies of the main line that were reacted to, oldest first; none of deleted chats. How a
    tool's call went is no reaction of the person."""
    ranks = " ".join(f"when '{source}' then {rank}" for rank, source in enumerate(PRECEDENCE) if source != "tool")
    # With min() alone, SQLite takes the other columns from the row that has it: the signal that counts most.
    query = f"""
        select signals.message_id, signals.score, messages.adapter_id, messages.created_at,
            min(case signals.source {ranks} else 99 end) as rank
        from signals join messages on messages.id = signals.message_id join chats on chats.id = messages.chat_id
        where signals.state = 'active' and messages.turn_type = 'main' and chats.deleted_at = ''
        group by signals.message_id having rank < 99 order by signals.message_id desc limit ?
    """
    with store.database.read() as db:
        rows = list(db.query(query, [limit]))
    return [
        Scored(row["message_id"], row["score"], row["adapter_id"] or 0, row["created_at"]) for row in reversed(rows)
    ]
