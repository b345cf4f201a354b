"""Chats and their messages: a tree for each chat, nothing in it ever overwritten."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from ..errors import NotFoundError
from .database import Database, now
from .records import Chat, MessageState, StoredMessage, TurnType

if TYPE_CHECKING:
    from ..engine.base import Generation


Teaching = Literal["yes", "off", "never"]
TEACHING: dict[Teaching, int] = {"yes": 1, "off": 0, "never": -1}


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
            identity = db.table("chats").insert(row).last_pk
        return self.get(int(str(identity)))

    def get(self, chat_id: int) -> Chat:
        """Raises NotFoundError."""
        with self._database.read() as db:
            for row in db.table("chats").rows_where("id = ?", [chat_id]):
                return _chat(row)
        raise NotFoundError(f"There is no chat {chat_id}. `claw-local history list` shows those there are.")

    def list(self, *, limit: int = 200, archived: bool = False) -> list[Chat]:
        """Newest first."""
        with self._database.read() as db:
            rows = db.table("chats").rows_where(
                "archived = ?", [int(archived)], order_by="updated_at desc, id desc", limit=limit
            )
            return [_chat(row) for row in rows]

    def update(self, chat_id: int, **changes: Any) -> Chat:
        """Change title, system, learn, archived, model or head_id."""
        self.get(chat_id)
        with self._database.write() as db:
            db.table("chats").update(chat_id, {**changes, "updated_at": now()})
        return self.get(chat_id)

    def delete(self, chat_id: int) -> None:
        """Remove a chat with its messages, signals, hints and samples."""
        self.get(chat_id)
        mine = "message_id in (select id from messages where chat_id = ?)"
        with self._database.write() as db:
            for table in ("pieces", "signals", "samples"):
                db.table(table).delete_where(mine, [chat_id])
            db.table("hints").delete_where(f"chat_id = ? or {mine}", [chat_id, chat_id])
            db.execute("update chats set head_id = null where id = ?", [chat_id])
            db.execute("update messages set parent_id = null where chat_id = ?", [chat_id])
            db.table("messages").delete_where("chat_id = ?", [chat_id])
            db.table("chats").delete(chat_id)


class Messages:
    """The table of messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        chat_id: int,
        role: str,
        content: str,
        *,
        parent_id: int | None,
        state: MessageState = "done",
        turn_type: TurnType = "main",
        learn: Teaching = "yes",
        make_head: bool = True,
        **columns: Any,
    ) -> int:
        """Write one message and make it the head of its chat (side turns leave the head alone).

        `learn`: may it teach? "off" because learning is off, which `let_past_teach` can change; "never" because the
        person said so, which nothing can.
        """
        moment = now()
        row: dict[str, Any] = {
            "chat_id": chat_id,
            "parent_id": parent_id,
            "role": role,
            "content": content,
            "state": state,
            "turn_type": turn_type,
            "learn": TEACHING[learn],
            "writer": process_identity() if state == "streaming" else "",
            "created_at": moment,
            **{name: _to_column(name, value) for name, value in columns.items()},
        }
        with self._database.write() as db:
            identity = int(str(db.table("messages").insert(row).last_pk))
            head = {"head_id": identity} if make_head and turn_type != "side" else {}
            db.table("chats").update(chat_id, {**head, "updated_at": moment})
        return identity

    def begin_turn(
        self, chat_id: int, question: str | None, *, parent_id: int | None, learn: Teaching = "yes", **columns: Any
    ) -> tuple[int, int]:
        """In one transaction: the person's message (None: the parent already is one) and the reply that is to come.

        Returns (user message id, assistant message id).
        """
        with self._database.write():
            user_id = (
                parent_id if question is None else self.add(chat_id, "user", question, parent_id=parent_id, learn=learn)
            )
            assert user_id is not None, "a reply needs a message to reply to"
            reply_id = self.add(chat_id, "assistant", "", parent_id=user_id, state="streaming", learn=learn, **columns)
        return user_id, reply_id

    def describe(self, message_id: int, **columns: Any) -> None:
        """Note what a reply is being written with: model, model_sha256, adapter_id, hint_ids."""
        with self._database.write() as db:
            db.table("messages").update(message_id, {name: _to_column(name, value) for name, value in columns.items()})

    def go_on(self, chat_id: int, question: str, *, learn: Teaching = "yes") -> tuple[int | None, int, int]:
        """A turn at the end of the branch that is shown, whoever else writes in the chat at the same time.

        Returns (the message before it or None, user message id, assistant message id).
        """
        with self._database.write() as db:
            (row,) = db.table("chats").rows_where("id = ?", [chat_id], select="head_id")
            return (row["head_id"], *self.begin_turn(chat_id, question, parent_id=row["head_id"], learn=learn))

    def append_piece(self, message_id: int, text: str) -> None:
        """Keep a piece of a reply before it is shown."""
        with self._database.write() as db:
            db.conn.execute("insert into pieces (message_id, text) values (?, ?)", (message_id, text))

    def finish(
        self, message_id: int, generation: Generation, *, state: MessageState, timings: dict[str, float]
    ) -> None:
        """Fold the pieces into the whole reply with its tokens."""
        with self._database.write() as db:
            db.table("messages").update(
                message_id,
                {
                    "content": generation.text,
                    "state": state,
                    "prompt_ids": pack_ints(generation.prompt_ids),
                    "response_ids": pack_ints(generation.response_ids),
                    "logprobs": pack_floats(generation.logprobs),
                    "sampling": json.dumps({**asdict(generation.sampling), "seed": generation.seed}),
                    "timings": json.dumps(timings),
                    "finish_reason": generation.finish_reason,
                    "writer": "",
                },
            )
            db.table("pieces").delete_where("message_id = ?", [message_id])

    def fail(self, message_id: int, state: MessageState) -> None:
        """Close a reply that did not come to its end, keeping what was shown of it."""
        with self._database.write() as db:
            shown = [
                row["text"] for row in db.table("pieces").rows_where("message_id = ?", [message_id], order_by="id")
            ]
            db.table("messages").update(message_id, {"content": "".join(shown), "state": state, "writer": ""})
            db.table("pieces").delete_where("message_id = ?", [message_id])

    def recover(self) -> int:
        """Mark replies whose process has ended as interrupted, with the text that was shown. Returns how many."""
        with self._database.read() as db:
            waiting = list(db.table("messages").rows_where("state = 'streaming'", select="id, writer"))
        lost = [row["id"] for row in waiting if not process_lives(row["writer"])]
        for message_id in lost:
            self.fail(message_id, "interrupted")
        return len(lost)

    def get(self, message_id: int) -> StoredMessage:
        """Raises NotFoundError."""
        with self._database.read() as db:
            for row in db.table("messages").rows_where("id = ?", [message_id]):
                return _message(row)
        raise NotFoundError(f"There is no message {message_id}. Message ids stand in `claw-local ask --json`.")

    def branch(self, head_id: int | None) -> list[StoredMessage]:
        """The messages from the first one to `head_id`, oldest first."""
        if head_id is None:
            return []
        query = """
            with recursive branch(id, parent_id, depth) as (
                select id, parent_id, 0 from messages where id = :head
                union all
                select m.id, m.parent_id, depth + 1 from messages m join branch on m.id = branch.parent_id
            )
            select messages.* from messages join branch using (id) order by depth desc
        """
        with self._database.read() as db:
            return [_message(row) for row in db.query(query, {"head": head_id})]

    def next_states(self, message_id: int) -> list[StoredMessage]:
        """The user and tool messages that follow an assistant message directly, newest first."""
        with self._database.read() as db:
            rows = db.table("messages").rows_where(
                "parent_id = ? and role in ('user', 'tool')", [message_id], order_by="id desc"
            )
            return [_message(row) for row in rows]

    def siblings(self, message_id: int) -> list[StoredMessage]:
        """The other messages with the same parent: regenerated or edited versions, oldest first."""
        with self._database.read() as db:
            rows = db.table("messages").rows_where(
                "parent_id = (select parent_id from messages where id = ?) and id != ?",
                [message_id, message_id],
                order_by="id",
            )
            return [_message(row) for row in rows]

    def teaching_replies(self, message_ids: Sequence[int] | None = None) -> list[StoredMessage]:
        """Every finished main-line reply that the model wrote and that may teach (its own mark and its chat's), oldest
        first; with `message_ids`, only those of them."""
        condition = (
            "role = 'assistant' and state = 'done' and turn_type = 'main' and learn = 1 and length(response_ids) > 0 "
            "and chat_id in (select id from chats where learn = 1)"
        )
        if message_ids is not None:
            condition += f" and id in ({', '.join(str(int(identity)) for identity in message_ids)})"
        with self._database.read() as db:
            return [_message(row) for row in db.table("messages").rows_where(condition, order_by="id")]

    def count_silent(self) -> int:
        """How many replies were written while learning was off, in chats that may teach."""
        with self._database.read() as db:
            return int(
                db.table("messages").count_where(
                    "role = 'assistant' and learn = 0 and chat_id in (select id from chats where learn = 1)"
                )
            )

    def let_past_teach(self) -> int:
        """Let replies written while learning was off teach after all. Returns how many."""
        count = self.count_silent()
        with self._database.write() as db:
            db.execute(
                "update messages set learn = 1 where learn = 0 and chat_id in (select id from chats where learn = 1)"
            )
        return count


def process_identity() -> str:
    """This process as "pid:start time", so that a number used again is not mistaken for it."""
    return _identity(os.getpid())


def process_lives(identity: str) -> bool:
    """Whether the process of `process_identity()` still runs."""
    pid, _, _ = identity.partition(":")
    return pid.isdigit() and _identity(int(pid)) == identity


def _identity(pid: int) -> str:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return ""
        return f"{pid}:{process.create_time():.2f}"
    except psutil.Error:
        return ""


def pack_ints(values: Iterable[int]) -> bytes:
    """Token ids as little-endian int32, the way they lie in the database."""
    return array("i", values).tobytes()


def pack_floats(values: Iterable[float]) -> bytes:
    """Log-probabilities as little-endian float32."""
    return array("f", values).tobytes()


def _ints(data: bytes | None) -> tuple[int, ...]:
    return tuple(array("i", data or b""))


def _floats(data: bytes | None) -> tuple[float, ...]:
    return tuple(array("f", data or b""))


def _to_column(name: str, value: Any) -> Any:
    if name in ("prompt_ids", "response_ids"):
        return pack_ints(value)
    if name == "logprobs":
        return pack_floats(value)
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value)
    return value


def _chat(row: dict[str, Any]) -> Chat:
    return Chat(**{**row, "learn": bool(row["learn"]), "archived": bool(row["archived"])})


def _message(row: dict[str, Any]) -> StoredMessage:
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
        prompt_ids=_ints(row["prompt_ids"]),
        response_ids=_ints(row["response_ids"]),
        logprobs=_floats(row["logprobs"]),
        sampling=json.loads(row["sampling"] or "{}"),
        model=row["model"] or "",
        model_sha256=row["model_sha256"] or "",
        adapter_id=row["adapter_id"] or 0,
        hint_ids=tuple(hint_ids),
        timings=json.loads(row["timings"] or "{}"),
        finish_reason=row["finish_reason"] or "",
        created_at=row["created_at"],
    )
