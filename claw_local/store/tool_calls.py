"""The table of tool calls: what was called, who allowed it, what came of it, and how it can be taken back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..errors import NotFoundError
from ..language import _
from .database import Database, now
from .records import ToolCall, ToolDecision, ToolState


class ToolCalls:
    """The table of tool calls, and the sets of tools that replies were told of."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        *,
        chat_id: int,
        reply_id: int,
        result_id: int,
        name: str,
        arguments: dict[str, Any],
        title: str,
        decision: ToolDecision,
        state: ToolState,
        score: int,
        path: str = "",
        before: bytes | None = None,
        after_sha256: str = "",
        workspace: str = "",
    ) -> ToolCall:
        row = {
            "chat_id": chat_id,
            "reply_id": reply_id,
            "result_id": result_id,
            "name": name,
            # As they read, so that a text can be found in them when it is to be forgotten.
            "arguments": json.dumps(arguments, ensure_ascii=False).encode("utf-8", "replace").decode(),
            "title": title,
            "decision": decision,
            "state": state,
            "score": score,
            "path": path,
            "before": before,
            "after_sha256": after_sha256,
            "workspace": workspace,
            "created_at": now(),
        }
        with self._database.write() as db:
            identity = db.table("tool_calls").insert(row).last_pk
        return _call({**row, "id": identity})

    def get(self, call_id: int) -> ToolCall:
        """Raises NotFoundError."""
        with self._database.read() as db:
            for row in db.table("tool_calls").rows_where("id = ?", [call_id]):
                return _call(row)
        raise NotFoundError(
            _("There is no tool call {call_id}. `claw-local tools log` shows those there are.", call_id=call_id)
        )

    def list(self, *, chat_id: int | None = None, limit: int = 100) -> list[ToolCall]:
        """Newest first; those of deleted chats are left out."""
        where = "chat_id in (select id from chats where deleted_at = '')"
        values: list[int] = []
        if chat_id is not None:
            where, values = f"{where} and chat_id = ?", [chat_id]
        with self._database.read() as db:
            rows = db.table("tool_calls").rows_where(where, values, order_by="id desc", limit=limit)
            return [_call(row) for row in rows]

    def of_results(self, message_ids: Sequence[int]) -> dict[int, ToolCall]:
        """The calls that these messages of tools answer, by message."""
        wanted = ", ".join(str(int(identity)) for identity in message_ids)
        with self._database.read() as db:
            rows = db.table("tool_calls").rows_where(f"result_id in ({wanted})")
            return {row["result_id"]: _call(row) for row in rows}

    def undoable(self, chat_id: int) -> ToolCall | None:
        """The chat's newest call that wrote a file and was not undone."""
        with self._database.read() as db:
            for row in db.table("tool_calls").rows_where(
                "chat_id = ? and state = 'done' and after_sha256 != ''", [chat_id], order_by="id desc", limit=1
            ):
                return _call(row)
        return None

    def set_state(self, call_id: int, state: ToolState) -> None:
        with self._database.write() as db:
            db.table("tool_calls").update(call_id, {"state": state})

    # The sets of tools that replies were told of, each kept once

    def toolset_id(self, specs: str) -> int:
        """The id of a set of tools, as JSON text; 0 for none."""
        if not specs:
            return 0
        with self._database.write() as db:
            for row in db.table("toolsets").rows_where("specs = ?", [specs], select="id"):
                return int(row["id"])
            return int(str(db.table("toolsets").insert({"specs": specs}).last_pk))

    def toolset(self, toolset_id: int) -> str:
        """A set of tools as JSON text; "" for none."""
        with self._database.read() as db:
            for row in db.table("toolsets").rows_where("id = ?", [toolset_id], select="specs"):
                return str(row["specs"])
        return ""


def _call(row: dict[str, Any]) -> ToolCall:
    return ToolCall(
        **{**row, "id": int(row["id"]), "arguments": json.loads(row["arguments"]), "score": row["score"] or 0}
    )
