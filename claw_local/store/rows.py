"""Between rows as SQLite holds them and records: how token ids, JSON and switches lie in their columns."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from .records import Chat, StoredMessage

Teaching = Literal["yes", "off", "never"]
TEACHING: dict[Teaching, int] = {"yes": 1, "off": 0, "never": -1}

IN_DELETED = "select id from messages where chat_id in (select id from chats where deleted_at != '')"
"""The messages of deleted chats, in SQL."""


def pack_ints(values: Iterable[int]) -> bytes:
    """Token ids as little-endian int32, the way they lie in the database."""
    return array("i", values).tobytes()


def pack_floats(values: Iterable[float]) -> bytes:
    """Log-probabilities as little-endian float32."""
    return array("f", values).tobytes()


def ints(data: bytes | None) -> tuple[int, ...]:
    return tuple(array("i", data or b""))


def floats(data: bytes | None) -> tuple[float, ...]:
    return tuple(array("f", data or b""))


def to_column(name: str, value: Any) -> Any:
    if name in ("prompt_ids", "response_ids"):
        return pack_ints(value)
    if name == "logprobs":
        return pack_floats(value)
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value)
    return value


def chat_of(row: dict[str, Any]) -> Chat:
    return Chat(
        **{
            **row,
            "learn": bool(row["learn"]),
            "archived": bool(row["archived"]),
            "sampling": json.loads(row["sampling"]),
            "always": tuple(json.loads(row["always"] or "[]")),
        }
    )


def message_of(row: dict[str, Any]) -> StoredMessage:
    hint_ids: Sequence[int] = json.loads(row["hint_ids"] or "[]")
    return StoredMessage(
        id=row["id"],
        chat_id=row["chat_id"],
        parent_id=row["parent_id"],
        role=row["role"],
        content=row["content"],
        state=row["state"],
        turn_type=row["turn_type"],
        learn=row["learn"] == TEACHING["yes"],
        prompt_ids=ints(row["prompt_ids"]),
        response_ids=ints(row["response_ids"]),
        logprobs=floats(row["logprobs"]),
        sampling=json.loads(row["sampling"] or "{}"),
        model=row["model"] or "",
        model_sha256=row["model_sha256"] or "",
        adapter_id=row["adapter_id"] or 0,
        hint_ids=tuple(hint_ids),
        timings=json.loads(row["timings"] or "{}"),
        finish_reason=row["finish_reason"] or "",
        system=row["system"],
        created_at=row["created_at"],
        toolset_id=row["toolset_id"] or 0,
    )
