"""The table of chats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import NotFoundError
from ..language import _
from . import drafts, search
from .database import Database, now
from .records import Chat
from .rows import Teaching, chat_of, to_column

__all__ = ["Chats", "Teaching"]


class Chats:
    """The table of chats."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, *, title: str = "", model: str = "", system: str = "", learn: bool = True) -> Chat:
        moment = now()
        row = {
            "title": title,
            "model": model,
            "system": system,
            "learn": int(learn),
            "archived": 0,
            "head_id": None,
            "created_at": moment,
            "updated_at": moment,
        }
        with self._database.write() as db:
            identity = int(str(db.table("chats").insert(row).last_pk))
            search.add(db, identity, None, title, moment)
        return self.get(identity)

    def get(self, chat_id: int) -> Chat:
        """Raises NotFoundError."""
        with self._database.read() as db:
            for row in db.table("chats").rows_where("id = ?", [chat_id]):
                return chat_of(row)
        raise NotFoundError(
            _("There is no chat {chat_id}. `claw-local history list` shows those there are.", chat_id=chat_id)
        )

    def there(self, chat_ids: Iterable[int]) -> set[int]:
        """Those of these chats that are there and not deleted."""
        with self._database.read() as db:
            chosen = sorted(set(chat_ids))
            marks = ",".join("?" * len(chosen))
            rows = db.execute(f"select id from chats where deleted_at = '' and id in ({marks})", chosen)
            return {int(row[0]) for row in rows}

    def list(self, *, limit: int = 200, archived: bool = False) -> list[Chat]:
        """Newest first; deleted ones are left out."""
        with self._database.read() as db:
            rows = db.table("chats").rows_where(
                "archived = ? and deleted_at = ''", [int(archived)], order_by="updated_at desc, id desc", limit=limit
            )
            return [chat_of(row) for row in rows]

    def deleted(self, *, before: str) -> Sequence[int]:
        """Chats that were deleted before a moment and wait to be removed for good, oldest first."""
        with self._database.read() as db:
            rows = db.table("chats").rows_where(
                "deleted_at != '' and deleted_at <= ?", [before], select="id", order_by="deleted_at"
            )
            return [int(row["id"]) for row in rows]

    def update(self, chat_id: int, *, touch: bool = True, **changes: Any) -> Chat:
        """Change title, system, learn, archived, model, sampling, draft, workspace, always, deleted_at or head_id.

        `touch`: whether that makes it the chat used last.
        """
        before = self.get(chat_id)
        columns = {name: to_column(name, value) for name, value in changes.items()}
        if touch:
            columns["updated_at"] = now()
        with self._database.write() as db:
            db.table("chats").update(chat_id, columns)
            if changes.get("title", before.title) != before.title:
                search.remove_title(db, chat_id, before.title)
                search.add(db, chat_id, None, changes["title"], before.created_at)
        return self.get(chat_id)

    def erase(self, chat_ids: Sequence[int]) -> None:
        """Remove chats so that nothing of them can be read from the disk either."""
        with self._database.erasing(), self._database.write() as db:
            for chat_id in chat_ids:
                self.delete(chat_id)
            search.squeeze(db)

    def delete(self, chat_id: int) -> None:
        """Remove a chat with its messages, signals, hints and samples."""
        self.get(chat_id)
        mine = "message_id in (select id from messages where chat_id = ?)"
        with self._database.write() as db:
            search.remove_chat(db, chat_id)
            drafts.remove(db, chat_id)
            for table in ("pieces", "signals", "samples"):
                db.table(table).delete_where(mine, [chat_id])
            db.table("tool_calls").delete_where("chat_id = ?", [chat_id])
            db.table("hints").delete_where(f"chat_id = ? or {mine}", [chat_id, chat_id])
            db.execute("update chats set head_id = null where id = ?", [chat_id])
            db.execute("update messages set parent_id = null where chat_id = ?", [chat_id])
            db.table("messages").delete_where("chat_id = ?", [chat_id])
            db.table("chats").delete(chat_id)
