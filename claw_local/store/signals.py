"""Signals about replies, and hints: what was made known, and what fast memory holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..errors import NotFoundError
from ..language import _
from .database import Database, now
from .records import Hint, HintScope, HintState, Signal, SignalSource, SignalState
from .rows import IN_DELETED

_DELETED = "select id from chats where deleted_at != ''"


_OF_COPIES = """
        select copy.id from messages copy join messages mine
        on copy.created_at = mine.created_at and copy.content = mine.content and copy.role = mine.role
        where mine.id = ?
"""
_REWRITE_COPIES = f"""
    update signals set hint = ? where state = 'copied' and hint = ? and message_id in ({_OF_COPIES})
"""
_WITHDRAW_COPIES = f"""
    update signals set state = 'withdrawn'
    where state = 'copied' and source = ? and score = ? and message_id in ({_OF_COPIES})
"""


class Signals:
    """The table of signals. Of one source, the newest counts: an older one becomes "superseded"."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        message_id: int,
        source: SignalSource,
        score: int,
        *,
        hint: str = "",
        probabilities: dict[str, float] | None = None,
        judge_version: str = "",
        votes: Sequence[int] = (),
        state: SignalState = "active",
    ) -> Signal:
        row = {
            "message_id": message_id,
            "source": source,
            "score": score,
            "hint": hint,
            "probabilities": json.dumps(probabilities or {}),
            "judge_version": judge_version,
            "state": state,
            "created_at": now(),
            "votes": json.dumps(list(votes)),
        }
        with self._database.write() as db:
            db.execute(
                "update signals set state = 'superseded' where message_id = ? and source = ? and state != 'superseded'",
                [message_id, source],
            )
            identity = db.table("signals").insert(row).last_pk
        return _signal({**row, "id": identity})

    def withdraw(self, signals: Sequence[Signal]) -> None:
        """They count no more, nor are they shown; nor are those that copies of the reply have of them. A sample that
        no run has used yet goes: what is left to say of the reply makes it anew."""
        with self._database.write() as db:
            for one in signals:
                db.execute("update signals set state = 'withdrawn' where id = ?", [one.id])
                if one.state == "active":
                    db.execute(_WITHDRAW_COPIES, [one.source, one.score, one.message_id])
                db.execute("delete from samples where message_id = ? and times_used = 0", [one.message_id])

    def withdrawn(self, message_ids: Sequence[int]) -> set[int]:
        """Those of which something was taken back that nothing of its kind has replaced since."""
        found: set[int] = set()
        with self._database.read() as db:
            for start in range(0, len(message_ids), 500):
                part = list(message_ids[start : start + 500])
                marks = ", ".join("?" * len(part))
                query = f"select message_id from signals where state = 'withdrawn' and message_id in ({marks})"
                found.update(int(row[0]) for row in db.execute(query, part))
        return found

    def of(self, message_ids: Sequence[int]) -> dict[int, list[Signal]]:
        """The signals that count, by message; of the copy of a reply, those that count for the reply."""
        found: dict[int, list[Signal]] = {message_id: [] for message_id in message_ids}
        with self._database.read() as db:
            for start in range(0, len(message_ids), 500):
                part = list(message_ids[start : start + 500])
                marks = ", ".join("?" * len(part))
                for row in db.table("signals").rows_where(
                    f"message_id in ({marks}) and state in ('active', 'copied')", part, order_by="id"
                ):
                    found[row["message_id"]].append(_signal(row))
        return found

    def said(self, message_ids: Sequence[int]) -> set[tuple[int, str]]:
        """All hints that were ever given for these, with the message; without those that were removed since."""
        found: set[tuple[int, str]] = set()
        with self._database.read() as db:
            for start in range(0, len(message_ids), 500):
                part = list(message_ids[start : start + 500])
                marks = ", ".join("?" * len(part))
                query = f"select message_id, hint from signals where hint != '' and message_id in ({marks})"
                found.update((int(message), str(hint)) for message, hint in db.execute(query, part))
        return found

    def newest_judged(self, limit: int) -> list[int]:
        """Ids of the newest replies that have a signal, oldest first."""
        query = (
            f"select distinct message_id from signals where state = 'active' and message_id not in ({IN_DELETED}) "
            "order by message_id desc limit ?"
        )
        with self._database.read() as db:
            return [int(row[0]) for row in db.execute(query, [limit]).fetchall()][::-1]

    def spoken_of(self, limit: int) -> list[int]:
        """Ids of the newest replies that the person gave a thumb or edited, oldest first."""
        query = (
            "select distinct message_id from signals where state = 'active' and source in ('thumb', 'edit') "
            f"and message_id not in ({IN_DELETED}) order by message_id desc limit ?"
        )
        with self._database.read() as db:
            return [int(row[0]) for row in db.execute(query, [limit]).fetchall()][::-1]

    def last_judged(self, model_sha256: str, adapter_id: int, *, others: bool = False, limit: int = 40) -> list[int]:
        """Ids of the newest main-line replies that somebody reacted to (a tool's outcome is none) and that this adapter
        (0: the base) wrote on this model, or with `others` any other one; oldest first."""
        query = f"""
            select id from messages
            where role = 'assistant' and turn_type = 'main' and state = 'done' and model_sha256 = ?
            and adapter_id {"!=" if others else "="} ?
            and exists (select 1 from signals where message_id = messages.id and signals.state = 'active'
                        and signals.source != 'tool')
            and chat_id not in ({_DELETED})
            order by id desc limit ?
        """
        with self._database.read() as db:
            rows = db.execute(query, [model_sha256, adapter_id, limit]).fetchall()
        return [int(row[0]) for row in rows][::-1]


class Hints:
    """The table of hints."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        text: str,
        *,
        message_id: int | None = None,
        chat_id: int | None = None,
        scope: HintScope = "everywhere",
    ) -> Hint:
        row = {
            "text": text,
            "message_id": message_id,
            "chat_id": chat_id,
            "scope": scope,
            "state": "active",
            "uses": 0,
            "created_at": now(),
        }
        with self._database.write() as db:
            identity = db.table("hints").insert(row).last_pk
        return _hint({**row, "id": identity})

    def get(self, hint_id: int) -> Hint:
        """Raises NotFoundError."""
        with self._database.read() as db:
            for row in db.table("hints").rows_where("id = ?", [hint_id]):
                return _hint(row)
        raise NotFoundError(
            _("There is no hint {hint_id}. `claw-local hints list` shows those there are.", hint_id=hint_id)
        )

    def list(self, *, state: HintState | None = "active") -> list[Hint]:
        """Newest first; those of deleted chats are left out."""
        kept = f"coalesce(message_id, 0) not in ({IN_DELETED}) and coalesce(chat_id, 0) not in ({_DELETED})"
        with self._database.read() as db:
            where, values = (f"state = ? and {kept}", [state]) if state else (kept, [])
            return [_hint(row) for row in db.table("hints").rows_where(where, values, order_by="id desc")]

    def every(self) -> Sequence[Hint]:
        """All there are, those of deleted chats too."""
        with self._database.read() as db:
            return [_hint(row) for row in db.table("hints").rows_where(order_by="id")]

    def of_message(self, message_id: int) -> Sequence[Hint]:
        with self._database.read() as db:
            return [_hint(row) for row in db.table("hints").rows_where("message_id = ?", [message_id], order_by="id")]

    def set_state(self, hint_id: int, state: HintState) -> Hint:
        self.get(hint_id)
        with self._database.write() as db:
            db.table("hints").update(hint_id, {"state": state})
        return self.get(hint_id)

    def set_text(self, hint_id: int, text: str) -> Hint:
        """Change its words, also where they are the lesson of a reply. Raises NotFoundError."""
        return self._rewrite(self.get(hint_id), text)

    def set_scope(self, hint_id: int, scope: HintScope) -> Hint:
        """Change where it holds. Raises NotFoundError."""
        self.get(hint_id)
        with self._database.write() as db:
            db.table("hints").update(hint_id, {"scope": scope})
        return self.get(hint_id)

    def remove(self, hint_id: int) -> Hint:
        """Delete it; the reply it corrected keeps its score, without a lesson. Raises NotFoundError."""
        hint = self.get(hint_id)
        with self._database.write() as db:
            self._rewrite(hint, "")
            db.table("hints").delete(hint_id)
        return hint

    def _rewrite(self, hint: Hint, text: str) -> Hint:
        with self._database.write() as db:
            db.table("hints").update(hint.id, {"text": text})
            if hint.message_id is not None:
                for table in ("signals", "samples"):
                    db.execute(
                        f"update {table} set hint = ? where message_id = ? and hint = ?",
                        [text, hint.message_id, hint.text],
                    )
                db.execute(_REWRITE_COPIES, [text, hint.text, hint.message_id])
        return self.get(hint.id)

    def count_use(self, hint_ids: Sequence[int]) -> None:
        with self._database.write() as db:
            for hint_id in hint_ids:
                db.execute("update hints set uses = uses + 1 where id = ?", [hint_id])


def _signal(row: dict[str, Any]) -> Signal:
    return Signal(
        id=int(row["id"]),
        message_id=row["message_id"],
        source=row["source"],
        score=row["score"],
        hint=row["hint"] or "",
        probabilities=json.loads(row["probabilities"] or "{}"),
        judge_version=row["judge_version"] or "",
        state=row["state"],
        created_at=row["created_at"],
        votes=tuple(json.loads(row["votes"] or "[]")),
    )


def _hint(row: dict[str, Any]) -> Hint:
    return Hint(**{**row, "id": int(row["id"])})
