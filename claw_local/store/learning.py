"""Samples, adapters and switches: what learning leaves behind."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..errors import NotFoundError
from ..language import _
from .database import Database, now
from .records import AdapterRecord, SampleRecord, Split
from .rows import IN_DELETED

_SAYS = "signals.state = 'active' and (signals.score != 0 or signals.hint != '') and signals.source != 'regenerate'"
"""What makes a signal a lesson, in SQL."""


class Samples:
    """Which replies the trainer may use, and how often it did."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self,
        message_id: int,
        split: Split,
        score: int | None,
        hint: str,
        *,
        step: int | None = None,
        advantage: float | None = None,
    ) -> None:
        """Add a sample, or bring it up to date; how often it was used stays. See `SampleRecord`."""
        with self._database.write() as db:
            db.execute(
                "insert into samples (message_id, split, score, hint, times_used, created_at, step, advantage) "
                "values (?, ?, ?, ?, 0, ?, ?, ?) on conflict (message_id) do update set score = excluded.score, "
                "hint = excluded.hint, step = excluded.step, advantage = excluded.advantage",
                [message_id, split, score, hint, now(), step, advantage],
            )

    def list(self) -> list[SampleRecord]:
        """All but those of deleted chats."""
        with self._database.read() as db:
            rows = db.table("samples").rows_where(f"message_id not in ({IN_DELETED})", order_by="message_id")
            return [SampleRecord(**{k: v for k, v in row.items() if k != "created_at"}) for row in rows]

    def count_waiting(self, *, after_signal: int = 0) -> int:
        """Replies with a lesson (a score other than 0, or a hint) that no accepted run has used yet. That another reply
        was asked for is no lesson by itself: it says nothing of what should have been different.

        Args:
            after_signal: count only lessons from signals with larger ids.
        """
        query = f"""
            select count(distinct signals.message_id) from signals
            join messages on messages.id = signals.message_id
            join chats on chats.id = messages.chat_id
            left join samples on samples.message_id = messages.id
            where signals.id > ? and {_SAYS}
            and messages.learn = 1 and chats.learn = 1 and chats.deleted_at = ''
            and messages.state = 'done' and length(messages.response_ids) > 0
            and coalesce(samples.times_used, 0) = 0
        """
        with self._database.read() as db:
            return int(db.execute(query, [after_signal]).fetchone()[0])

    def newest(self) -> tuple[int, int]:
        """The largest id of a signal and of a message; 0 where there is none."""
        with self._database.read() as db:
            row = db.execute(
                "select (select coalesce(max(id), 0) from signals), (select coalesce(max(id), 0) from messages)"
            ).fetchone()
            return int(row[0]), int(row[1])

    def count_unjudged(self, *, after_message: int = 0) -> int:
        """Replies that may teach and have a next state, but no word from a judge yet, and no lesson from the person
        either: those `count_waiting` counts.

        Args:
            after_message: count only replies with larger ids.
        """
        query = f"""
            select count(*) from messages join chats on chats.id = messages.chat_id
            where messages.id > ? and messages.role = 'assistant' and messages.state = 'done'
            and messages.turn_type = 'main'
            and messages.learn = 1 and chats.learn = 1 and chats.deleted_at = '' and messages.content != ''
            and exists (
                select 1 from messages next where next.parent_id = messages.id and next.role in ('user', 'tool')
            )
            and not exists (
                select 1 from signals where message_id = messages.id and signals.state = 'active'
                and (source in ('judge', 'tool') or {_SAYS})
            )
        """
        with self._database.read() as db:
            return int(db.execute(query, [after_message]).fetchone()[0])

    def remove(self, message_ids: Iterable[int]) -> None:
        with self._database.write() as db:
            for message_id in message_ids:
                db.table("samples").delete_where("message_id = ?", [message_id])

    def count_use(self, message_ids: Iterable[int]) -> None:
        with self._database.write() as db:
            for message_id in message_ids:
                db.execute("update samples set times_used = times_used + 1 where message_id = ?", [message_id])


class Adapters:
    """The table of adapters. At most one is "active" for each base model."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, *, parent_id: int, model_sha256: str, architecture: str, **columns: Any) -> AdapterRecord:
        row: dict[str, Any] = {
            "parent_id": parent_id,
            "name": "",
            "model_sha256": model_sha256,
            "architecture": architecture,
            "peft_dir": "",
            "gguf_path": "",
            "sha256": "{}",
            "recipe": "{}",
            "metrics": "{}",
            "lineage": "[]",
            "state": "candidate",
            "reason": "",
            "created_at": now(),
            **{name: _to_column(value) for name, value in columns.items()},
        }
        with self._database.write() as db:
            identity = db.table("adapters").insert(row).last_pk
        return self.get(int(str(identity)))

    def get(self, adapter_id: int) -> AdapterRecord:
        """Raises NotFoundError."""
        with self._database.read() as db:
            for row in db.table("adapters").rows_where("id = ?", [adapter_id]):
                return _adapter(row)
        raise NotFoundError(
            _(
                "There is no adapter {adapter_id}. `claw-local adapters list` shows those there are.",
                adapter_id=adapter_id,
            )
        )

    def list(self) -> list[AdapterRecord]:
        """Newest first."""
        with self._database.read() as db:
            return [_adapter(row) for row in db.table("adapters").rows_where(order_by="id desc")]

    def update(self, adapter_id: int, **columns: Any) -> AdapterRecord:
        self.get(adapter_id)
        with self._database.write() as db:
            db.table("adapters").update(adapter_id, {name: _to_column(value) for name, value in columns.items()})
        return self.get(adapter_id)

    def remove(self, adapter_id: int) -> None:
        """Delete a row. What was made from it has its parent as parent; chats and runs let go of it."""
        record = self.get(adapter_id)
        with self._database.write() as db:
            db.execute("update adapters set parent_id = ? where parent_id = ?", [record.parent_id, adapter_id])
            db.execute("update chats set adapter_id = null where adapter_id = ?", [adapter_id])
            db.execute("update runs set adapter_id = null where adapter_id = ?", [adapter_id])
            db.table("adapters").delete(adapter_id)

    def active(self, model_sha256: str) -> AdapterRecord | None:
        with self._database.read() as db:
            for row in db.table("adapters").rows_where(
                "state = 'active' and model_sha256 = ?", [model_sha256], order_by="id desc"
            ):
                return _adapter(row)
        return None

    def activate(self, adapter_id: int | None, model_sha256: str) -> None:
        """Make this the adapter in use for that model; None means the base. The one before retires."""
        with self._database.write() as db:
            db.execute(
                "update adapters set state = 'retired' where state = 'active' and model_sha256 = ?", [model_sha256]
            )
            if adapter_id is not None:
                db.table("adapters").update(adapter_id, {"state": "active"})


class Flags:
    """Switches that every open program must see at once, by name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str, default: str = "") -> str:
        with self._database.read() as db:
            for row in db.table("flags").rows_where("name = ?", [name]):
                return str(row["value"])
        return default

    def beginning(self, prefix: str) -> dict[str, str]:
        """Those whose names begin so, by the rest of the name."""
        with self._database.read() as db:
            rows = list(db.table("flags").rows_where("substr(name, 1, ?) = ?", [len(prefix), prefix], order_by="name"))
        return {row["name"].removeprefix(prefix): str(row["value"]) for row in rows}

    def set(self, name: str, value: str) -> None:
        with self._database.write() as db:
            db.table("flags").upsert({"name": name, "value": value}, pk="name")


def _to_column(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (dict, list, tuple)) else value


def _adapter(row: dict[str, Any]) -> AdapterRecord:
    return AdapterRecord(
        **{
            **row,
            "sha256": json.loads(row["sha256"] or "{}"),
            "recipe": json.loads(row["recipe"] or "{}"),
            "metrics": json.loads(row["metrics"] or "{}"),
            "lineage": tuple(json.loads(row["lineage"] or "[]")),
        }
    )
