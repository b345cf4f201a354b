"""Whether something was changed in the database since the last look, found out for next to nothing.

It must never know what to do about it.
"""

from __future__ import annotations

from typing import Any

from .database import Database


def version(database: Database) -> int:
    """A number that is another one once any other connection has written, of this program or of others.

    It means something only beside the one that the same thread got before. Raises StoreError.
    """
    with database.read() as db:
        return int(db.conn.execute("PRAGMA data_version").fetchone()[0])


def chat_stamp(database: Database, chat_id: int) -> tuple[Any, ...]:
    """What differs once a message, a reply that has ended, a mark or another branch has come into a chat; empty if the
    chat is not there. Raises StoreError."""
    with database.read() as db:
        row = db.execute(
            "select head_id, (select count(*) from messages where chat_id = chats.id), "
            "(select group_concat(id) from messages where chat_id = chats.id and +state = 'streaming'), "
            "(select total(s.id) from signals s join messages m on m.id = s.message_id where m.chat_id = chats.id) "
            "from chats where id = ?",
            [chat_id],
        ).fetchone()
    return tuple(row) if row is not None else ()
