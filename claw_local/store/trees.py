"""Whole chats at once: all branches of one, a copy of one, one that comes from somewhere else.

It must never know which program a given chat comes from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sqlite_utils import Database as SqliteDatabase

from ..errors import ClawError
from . import search
from .database import Database, now
from .records import GivenChat, GivenMessage, Put, StoredMessage
from .rows import TEACHING, message_of

_TOKENS = ("prompt_ids", "response_ids", "logprobs")
_ADD = """
    insert into messages (chat_id, parent_id, role, content, state, turn_type, learn, model, finish_reason, created_at,
                          origin_id)
    values (:chat_id, :parent_id, :role, :content, :state, 'main', :learn, :model, :finish_reason, :created_at, :key)
"""
_COPY_SIGNALS = """
    insert into signals (message_id, source, score, hint, probabilities, judge_version, state, created_at, votes)
    select ?, source, score, hint, probabilities, judge_version, 'copied', created_at, votes
    from signals where message_id = ? and state in ('active', 'copied') order by id
"""
# A copy teaches nothing: what it says has been said once. So it needs no tokens either.
_NOT_COPIED = {"id", "chat_id", "parent_id", "learn", "writer", "origin_id", *_TOKENS}


class Trees:
    """Chats with all their messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def messages(self, chat_id: int) -> list[StoredMessage]:
        """All main-line messages of a chat, each after its parent, without tokens and log-probabilities."""
        with self._database.read() as db:
            columns = (f"null {name}" if name in _TOKENS else name for name in db.table("messages").columns_dict)
            rows = db.table("messages").rows_where(
                "chat_id = ? and turn_type = 'main'", [chat_id], select=", ".join(columns), order_by="id"
            )
            return [message_of(row) for row in rows]

    def origins(self, chat_id: int) -> dict[int, str]:
        """Which message of its source each imported message of a chat is."""
        with self._database.read() as db:
            query = "select id, origin_id from messages where chat_id = ? and origin_id != ''"
            return {int(row[0]): str(row[1]) for row in db.execute(query, [chat_id]).fetchall()}

    def copy(self, chat_id: int, title: str) -> int:
        """A new chat with the settings of an old one, all its branches and the marks on its replies. Returns its id.

        A reply that is still being written is left out. The copied part teaches nothing: it has been said once.
        """
        moment = now()
        with self._database.write() as db:
            made = db.conn.execute(
                "insert into chats (title, model, system, learn, archived, sampling, workspace, adapter_id, "
                "created_at, updated_at) select ?, model, system, learn, 0, sampling, workspace, adapter_id, ?, ? "
                "from chats where id = ?",
                (title, moment, moment, chat_id),
            ).lastrowid
            assert made is not None
            search.add(db, made, None, title, moment)
            copies = _copy_messages(db, chat_id, made)
            (head,) = db.conn.execute("select head_id from chats where id = ?", (chat_id,)).fetchone()
            while head is not None and head not in copies:
                (head,) = db.conn.execute("select parent_id from messages where id = ?", (head,)).fetchone()
            db.conn.execute("update chats set head_id = ? where id = ?", (copies.get(head), made))
        return made

    def put(self, chats: Sequence[GivenChat], *, learn: bool) -> list[Put]:
        """Write chats that come from somewhere else, or what is new in them since they were written last, in one
        transaction.

        A message that is there already is known by its key, or else by its place and its words: nothing is ever doubled
        and nothing overwritten. `learn`: may the chats teach from now on? Their old messages never do.
        """
        said: list[search.Document] = []
        with self._database.write() as db:
            outcomes = [self._put(db, given, learn, said) for given in chats]
            search.add_all(db, said)
        return outcomes

    def _put(self, db: SqliteDatabase, given: GivenChat, learn: bool, said: list[search.Document]) -> Put:
        chat = self._find(db, given)
        if chat is not None and chat["deleted_at"]:
            return Put(chat["id"], deleted=True)
        chat_id = chat["id"] if chat is not None else _create(db, given, learn=learn and given.learn, said=said)
        ids, added = _merge(db, chat_id, given.messages, said, known=chat is not None)
        if added or chat is None:
            self._finish(db, chat_id, chat, given, ids)
        return Put(chat_id, created=chat is None, messages=added)

    @contextmanager
    def putting_many(self) -> Iterator[None]:
        """What is put inside costs less to index; at the end the index is made as quick to search as it was."""
        with self._database.write() as db:
            search.merge_less(db)
        try:
            yield
        except BaseException:
            with suppress(ClawError), self._database.write() as db:  # What went wrong is told, not this.
                search.merge_often(db)
            raise
        with self._database.write() as db:
            search.merge_often(db)
        more = True
        while more:  # In small steps: other programs want to write, too.
            with self._database.write() as db:
                more = search.merge_some(db)

    @staticmethod
    def _find(db: SqliteDatabase, given: GivenChat) -> dict[str, Any] | None:
        chats = db.table("chats")
        for row in chats.rows_where("origin = ? and origin_id = ?", [given.origin, given.origin_id]):
            return dict(row)
        # Older versions gave numbers again: only with its time it is that chat.
        for row in chats.rows_where("id = ? and created_at = ?", [given.chat_id, given.created_at]):
            return dict(row)
        return None

    @staticmethod
    def _finish(
        db: SqliteDatabase, chat_id: int, chat: dict[str, Any] | None, given: GivenChat, ids: dict[str, int]
    ) -> None:
        """The branch that is shown, and the time of the chat."""
        head = ids.get(given.head or "") or (ids[given.messages[-1].key] if given.messages else None)
        if chat is not None:
            # Where the person has gone on here, the branch stays as it is.
            imported = "select 1 from messages where id = ? and origin_id != ''"
            if chat["head_id"] is not None and not db.execute(imported, [chat["head_id"]]).fetchone():
                head = chat["head_id"]
        times = [given.updated_at, given.created_at, chat["updated_at"] if chat is not None else ""]
        db.conn.execute(
            "update chats set head_id = ?, updated_at = ? where id = ?", (head, max(times) or now(), chat_id)
        )


def _copy_messages(db: SqliteDatabase, chat_id: int, made: int) -> dict[int, int]:
    """Copy a chat's main line, all its branches, into another chat. Returns the copies' ids by the messages' ids."""
    names = ", ".join(name for name in db.table("messages").columns_dict if name not in _NOT_COPIED)
    copy = (
        f"insert into messages (chat_id, parent_id, learn, {names}) "
        f"select ?, ?, {TEACHING['never']}, {names} from messages where id = ?"
    )
    query = (
        "select id, parent_id, content, created_at from messages "
        "where chat_id = ? and turn_type = 'main' and state != 'streaming' order by id"
    )
    copies: dict[int, int] = {}
    for message_id, parent_id, content, created_at in db.conn.execute(query, (chat_id,)).fetchall():
        if parent_id is not None and parent_id not in copies:
            continue
        copied = db.conn.execute(copy, (made, copies.get(parent_id), message_id)).lastrowid
        assert copied is not None
        copies[message_id] = copied
        search.add(db, made, copied, content, created_at)
        db.conn.execute(_COPY_SIGNALS, (copied, message_id))
    return copies


def _create(db: SqliteDatabase, given: GivenChat, *, learn: bool, said: list[search.Document]) -> int:
    created_at = given.created_at or now()
    row = {
        "title": given.title,
        "model": given.model,
        "system": given.system,
        "learn": int(learn),
        "archived": int(given.archived),
        "sampling": json.dumps(given.sampling),
        "origin": given.origin,
        "origin_id": given.origin_id,
        "created_at": created_at,
        "updated_at": given.updated_at or created_at,
    }
    chat_id = int(str(db.table("chats").insert(row).last_pk))
    said.append(search.Document(chat_id, None, given.title, created_at))
    return chat_id


def _merge(
    db: SqliteDatabase, chat_id: int, messages: tuple[GivenMessage, ...], said: list[search.Document], *, known: bool
) -> tuple[dict[str, int], int]:
    """Write the messages that are not there yet, and add to `said` what is to be indexed. Returns the id of each key,
    and how many were new."""
    by_key: dict[str, int] = {}
    by_place: dict[tuple[int | None, str, str], int] = {}
    if known:
        query = "select id, parent_id, role, content, origin_id from messages where chat_id = ? and turn_type = 'main'"
        for message_id, parent_id, role, content, key in db.execute(query, [chat_id]).fetchall():
            if key:
                by_key[key] = message_id
            by_place.setdefault((parent_id, role, content), message_id)
    ids: dict[str, int] = {}
    added = 0
    for message in messages:
        parent_id = ids.get(message.parent) if message.parent is not None else None
        place = (parent_id, message.role, message.content)
        found = by_key.get(message.key) or by_place.get(place)
        if found is None:
            moment = message.created_at or now()
            found = by_place[place] = _add(db, chat_id, parent_id, message, moment)
            said.append(search.Document(chat_id, found, message.content, moment))
            added += 1
        ids[message.key] = found
    return ids, added


def _add(db: SqliteDatabase, chat_id: int, parent_id: int | None, message: GivenMessage, moment: str) -> int:
    row = {
        "chat_id": chat_id,
        "parent_id": parent_id,
        "role": message.role,
        "content": message.content,
        "state": message.state,
        "learn": TEACHING["never"],
        "model": message.model,
        "finish_reason": message.finish_reason,
        "created_at": moment,
        "key": message.key,
    }
    message_id = db.conn.execute(_ADD, row).lastrowid
    assert message_id is not None
    for source, score, hint in message.signals:
        db.conn.execute(
            "insert into signals (message_id, source, score, hint, state, created_at) values (?, ?, ?, ?, 'active', ?)",
            (message_id, source, score, hint, moment),
        )
    return message_id
