"""The table of messages: a tree for each chat, nothing in it ever overwritten."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlite_utils import Database as SqliteDatabase

from ..errors import NotFoundError
from ..language import _
from . import search
from .database import Database, now
from .processes import process_identity, process_lives
from .records import MessageState, StoredMessage, TurnType
from .rows import TEACHING, Teaching, message_of, pack_floats, pack_ints, to_column

if TYPE_CHECKING:
    from ..engine.base import Generation, Sampling

LONGEST_SAID = 20_000
"""Characters; a message longer than that is no line to call back and change."""

_FORMS = ("schema", "grammar", "triggers", "alternatives")
"""What a text had to keep to may be larger than the text; it is not kept."""
_TEACHING_CHATS = "select id from chats where learn = 1 and deleted_at = ''"


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
            **{name: to_column(name, value) for name, value in columns.items()},
        }
        with self._database.write() as db:
            identity = int(str(db.table("messages").insert(row).last_pk))
            aside = turn_type == "side"  # Nobody said it: the chat used last stays the one before.
            head: dict[str, Any] = {} if aside else {"updated_at": moment}
            if make_head and not aside:
                head["head_id"] = identity
            if role == "user" and turn_type == "main":
                head["deleted_at"] = ""  # Whoever goes on in a chat that was deleted in another window wants it back.
            if head:
                db.table("chats").update(chat_id, head)
            self._index(db, identity)
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
            db.table("messages").update(message_id, {name: to_column(name, value) for name, value in columns.items()})

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
        cut = {"cut": True} if generation.cut else {}
        with self._database.write() as db:
            db.table("messages").update(
                message_id,
                {
                    "content": generation.text,
                    "state": state,
                    "prompt_ids": pack_ints(generation.prompt_ids),
                    "response_ids": pack_ints(generation.response_ids),
                    "logprobs": pack_floats(generation.logprobs),
                    "sampling": json.dumps({**_drawn(generation.sampling), "seed": generation.seed, **cut}),
                    "timings": json.dumps(timings),
                    "finish_reason": generation.finish_reason,
                    "writer": "",
                },
            )
            self._close(db, message_id)

    def fail(self, message_id: int, state: MessageState) -> None:
        """Close a reply that did not come to its end, keeping what was shown of it."""
        with self._database.write() as db:
            shown = [
                row["text"] for row in db.table("pieces").rows_where("message_id = ?", [message_id], order_by="id")
            ]
            db.table("messages").update(message_id, {"content": "".join(shown), "state": state, "writer": ""})
            self._close(db, message_id)

    def _close(self, db: SqliteDatabase, message_id: int) -> None:
        db.table("pieces").delete_where("message_id = ?", [message_id])
        self._index(db, message_id)

    @staticmethod
    def _index(db: SqliteDatabase, message_id: int) -> None:
        query = "select chat_id, content, created_at from messages where id = ? and turn_type = 'main'"
        for chat_id, content, created_at in db.execute(query, [message_id]).fetchall():
            search.add(db, chat_id, message_id, content, created_at)

    def remove_empty(self, message_id: int, before_id: int) -> bool:
        """Remove a stopped version in which nothing stands, and show an earlier one of the same parent; whether it was
        such a version. The earlier one is no longer unwanted for its sake alone."""
        with self._database.write() as db:
            empty = self.get(message_id)
            others = [other for other in self.siblings(message_id) if other.role == "assistant"]
            if empty.state != "interrupted" or empty.content.strip() or before_id not in [one.id for one in others]:
                return False
            self.show(empty.chat_id, self.newest_below(before_id))
            search.remove_messages(db, [message_id])
            db.table("messages").delete(message_id)
            if not any(other.id > before_id for other in others):
                db.execute("delete from signals where message_id = ? and source = 'regenerate'", [before_id])
        return True

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
                return message_of(row)
        raise NotFoundError(
            _("There is no message {id}. `claw-local history show CHAT` shows the messages of a chat.", id=message_id)
        )

    def is_there(self, message_id: int) -> bool:
        with self._database.read() as db:
            return db.execute("select 1 from messages where id = ?", [message_id]).fetchone() is not None

    def last(self) -> tuple[int, str]:
        """Id of the newest message and when it was written; (0, "") if there is none. Quick."""
        with self._database.read() as db:
            row = db.execute("select id, created_at from messages order by id desc limit 1").fetchone()
            return (int(row[0]), str(row[1])) if row else (0, "")

    def said(self, limit: int) -> list[str]:
        """The person's last messages in chats begun here, newest first, each once; very long ones are left out, and
        what other programs say."""
        query = """
            select content, max(messages.id) as latest from messages join chats on chats.id = messages.chat_id
            where role = 'user' and turn_type = 'main' and deleted_at = '' and origin = ''
            and length(content) <= :longest and chats.id not in (select chat_id from sessions)
            group by content order by latest desc limit :limit
        """
        with self._database.read() as db:
            return [row["content"] for row in db.query(query, {"limit": limit, "longest": LONGEST_SAID})]

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
            return [message_of(row) for row in db.query(query, {"head": head_id})]

    def branch_ids(self, head_id: int | None) -> list[int]:
        """The ids of what was said on a branch, by tools too, oldest first: what a long chat is paged by."""
        query = """
            with recursive branch(id, parent_id, role, depth) as (
                select id, parent_id, role, 0 from messages where id = :head
                union all
                select m.id, m.parent_id, m.role, depth + 1 from messages m join branch on m.id = branch.parent_id
            )
            select id from branch where role in ('user', 'assistant', 'tool') order by depth desc
        """
        with self._database.read() as db:
            return [int(row["id"]) for row in db.query(query, {"head": head_id})]

    def some(self, message_ids: Sequence[int]) -> list[StoredMessage]:
        """These messages, oldest first, to be shown: without their prompts' tokens and the log-probabilities."""
        heavy = ("prompt_ids", "logprobs")
        wanted = ", ".join(str(int(identity)) for identity in message_ids)
        with self._database.read() as db:
            names = db.table("messages").columns_dict
            columns = ", ".join(f"null {name}" if name in heavy else name for name in names)
            rows = db.table("messages").rows_where(f"id in ({wanted})", select=columns, order_by="id")
            return [message_of(row) for row in rows]

    def versions_of(self, message_ids: Sequence[int]) -> dict[int, list[int]]:
        """For each message the ids of all that stand in its place (same parent, role and type), oldest first."""
        wanted = ", ".join(str(int(identity)) for identity in message_ids)
        query = f"""
            select mine.id as id, other.id as version from messages mine join messages other
            on other.parent_id = mine.parent_id and other.role = mine.role and other.turn_type = mine.turn_type
            where mine.id in ({wanted})
            union
            select mine.id, other.id from messages mine join messages other
            on mine.parent_id is null and other.chat_id = mine.chat_id and other.parent_id is null
            and other.role = mine.role and other.turn_type = mine.turn_type
            where mine.id in ({wanted}) order by 1, 2
        """
        found: dict[int, list[int]] = {message_id: [] for message_id in message_ids}
        with self._database.read() as db:
            for row in db.query(query):
                found[row["id"]].append(row["version"])
        return found

    def next_states(self, message_id: int) -> list[StoredMessage]:
        """The user and tool messages that follow an assistant message directly, newest first."""
        with self._database.read() as db:
            rows = db.table("messages").rows_where(
                "parent_id = ? and role in ('user', 'tool')", [message_id], order_by="id desc"
            )
            return [message_of(row) for row in rows]

    def answers(self, question_id: int) -> list[StoredMessage]:
        """The main-line replies to a message, oldest first."""
        with self._database.read() as db:
            rows = db.table("messages").rows_where(
                "parent_id = ? and role = 'assistant' and turn_type = 'main'", [question_id], order_by="id"
            )
            return [message_of(row) for row in rows]

    def siblings(self, message_id: int) -> list[StoredMessage]:
        """The other messages with the same parent: regenerated or edited versions, oldest first. First messages of a
        chat are siblings too."""
        with self._database.read() as db:
            rows: Iterable[dict[str, Any]] = []
            for mine in db.table("messages").rows_where("id = ?", [message_id], select="chat_id, parent_id"):
                place = "parent_id = :parent_id" if mine["parent_id"] else "chat_id = :chat_id and parent_id is null"
                rows = db.table("messages").rows_where(
                    f"{place} and id != :id", {**mine, "id": message_id}, order_by="id"
                )
            return [message_of(row) for row in rows]

    def newest_below(self, message_id: int) -> int:
        """The newest of all main-line messages that follow this one on any branch; itself if none does."""
        query = """
            with recursive below(id) as (
                select :id union all
                select m.id from messages m join below on m.parent_id = below.id where m.turn_type = 'main'
            )
            select max(id) from below
        """
        with self._database.read() as db:
            return int(db.execute(query, {"id": message_id}).fetchone()[0])

    def show(self, chat_id: int, head_id: int) -> None:
        """Make the branch that ends here the one shown. To look is not to change: the chat keeps its time."""
        with self._database.write() as db:
            db.table("chats").update(chat_id, {"head_id": head_id})

    def teaching_replies(
        self, message_ids: Sequence[int] | None = None, *, with_tokens: bool = True
    ) -> list[StoredMessage]:
        """Every main-line reply that a model wrote and that may teach (its own mark and its chat's), oldest first; with
        `message_ids`, only those of them. `with_tokens`: only replies that can be trained on: not those of a model
        behind a server, nor those that were stopped, after which a wish still is one."""
        states = "('done')" if with_tokens else "('done', 'interrupted')"
        condition = (
            f"role = 'assistant' and state in {states} and turn_type = 'main' and learn = 1 and content != '' "
            f"and chat_id in ({_TEACHING_CHATS})"
        )
        if with_tokens:
            condition += " and length(response_ids) > 0"
        if message_ids is not None:
            condition += f" and id in ({', '.join(str(int(identity)) for identity in message_ids)})"
        with self._database.read() as db:
            return [message_of(row) for row in db.table("messages").rows_where(condition, order_by="id")]

    def teaching_of(self, message_id: int) -> Teaching:
        """Whether a message may teach, and if not, whether that can change. Raises NotFoundError."""
        with self._database.read() as db:
            for row in db.table("messages").rows_where("id = ?", [message_id], select="learn"):
                return next(name for name, value in TEACHING.items() if value == row["learn"])
        raise NotFoundError(
            _("There is no message {id}. `claw-local history show CHAT` shows the messages of a chat.", id=message_id)
        )

    def count_silent(self) -> int:
        """How many replies were written while learning was off, in chats that may teach."""
        with self._database.read() as db:
            return int(
                db.table("messages").count_where(f"role = 'assistant' and learn = 0 and chat_id in ({_TEACHING_CHATS})")
            )

    def let_teach(self, message_id: int) -> None:
        """Let a reply written while learning was off teach; not one of which the person said that it never may."""
        with self._database.write() as db:
            db.execute("update messages set learn = 1 where id = ? and learn = 0", [message_id])

    def let_past_teach(self) -> int:
        """Let replies written while learning was off teach after all. Returns how many."""
        count = self.count_silent()
        with self._database.write() as db:
            db.execute(f"update messages set learn = 1 where learn = 0 and chat_id in ({_TEACHING_CHATS})")
        return count


def _drawn(sampling: Sampling) -> dict[str, Any]:
    return {name: value for name, value in asdict(sampling).items() if name not in _FORMS}
