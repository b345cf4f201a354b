"""The search index: every message and every chat's title, newest first. It must never know how hits are shown.

SQLite's FTS5 holds the words only, not the text once more. Its row numbers are times, so that the newest hits come
first without sorting; `search_docs` says which message each one is (none: the chat's title). It is kept up to date by
whoever writes messages, not by triggers, because the words are cut in Python (see `words`): change how they are cut,
and a migration must call `rebuild`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlite_utils import Database as SqliteDatabase

from .words import Term, indexed, parse

if TYPE_CHECKING:
    from .database import Database

_QUICKLY_SQUEEZED = 20_000
_OFTEN, _SELDOM = 4, 16
"""How many pieces of one size FTS5 puts together into one; 4 is its own default, 16 its most."""
_PAGES = 300
"""Pages of the index that are written in one go when pieces are put together: a tenth of a second or so."""
_LATEST = (1 << 43) - 2
"""Milliseconds: the year 2248. A later time, as damaged exports have one, would make a key too large for SQLite."""

_FIND = """
    select search_docs.chat_id, search_docs.message_id from search
    join search_docs on search_docs.key = search.rowid
    join chats on chats.id = search_docs.chat_id
    where search match :query and chats.deleted_at = ''
    order by search.rowid desc limit :limit
"""

_MESSAGES = """
    select chat_id, messages.id, title, role, content, messages.created_at from messages
    join chats on chats.id = chat_id where messages.id in ({})
"""
_TITLES = """
    select chats.id, (select min(id) from messages where chat_id = chats.id and turn_type = 'main') as first, title,
           'title', title, created_at
    from chats where chats.id in ({}) and first is not null
"""


@dataclass(frozen=True)
class Hit:
    """A message that was found; no message: the title of its chat."""

    chat_id: int
    message_id: int | None


@dataclass(frozen=True)
class Document:
    """What is indexed: a message; without one, the title of a chat."""

    chat_id: int
    message_id: int | None
    text: str
    created_at: str


@dataclass(frozen=True)
class HitText:
    """A hit with its text; of a title, `message_id` is the chat's first message, and the role is "title"."""

    chat_id: int
    message_id: int
    title: str
    role: str
    text: str
    created_at: str


class Search:
    """Looks up words in all chats that are not deleted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, query: str, *, limit: int) -> list[Hit]:
        """Hits with all terms of the query, newest first: those with the words as typed, then those whose last word
        goes on, and only if there are none, those whose words all do. Any query will do; one without a word finds
        nothing.
        """
        terms = parse(query)
        if not terms or limit < 1:
            return []
        found: dict[Hit, None] = {}
        whole, last, every = (_match(terms, first_open=place) for place in (len(terms), len(terms) - 1, 0))
        with self._database.read() as db:
            for match in dict.fromkeys((whole, last, every)):
                if len(found) < limit and not (found and match == every != last):
                    rows = db.execute(_FIND, {"query": match, "limit": limit + len(found)}).fetchall()
                    found |= dict.fromkeys(Hit(*row) for row in rows if Hit(*row) not in found)
        return list(found)[:limit]

    def look_up(self, hits: Sequence[Hit]) -> list[HitText]:
        """The texts of hits, in the same order. What was deleted in the meantime is left out."""
        found: dict[Hit, HitText] = {}
        with self._database.read() as db:
            for query, kind in ((_MESSAGES, False), (_TITLES, True)):
                ids = [hit.chat_id if kind else hit.message_id for hit in hits if (hit.message_id is None) == kind]
                for start in range(0, len(ids), 500):
                    part = ids[start : start + 500]
                    for row in db.execute(query.format(", ".join("?" * len(part))), part).fetchall():
                        text = HitText(*row)
                        found[Hit(text.chat_id, None if kind else text.message_id)] = text
        return [found[hit] for hit in hits if hit in found]


def create(db: SqliteDatabase) -> None:
    """Make the tables. Words that are still being typed have an index of their own, up to four letters."""
    db.execute(
        "create virtual table search using fts5(text, content='', columnsize=0, prefix='1 2 3 4', "
        "tokenize=\"unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'\")"
    )
    db.table("search_docs").create({"key": int, "message_id": int, "chat_id": int}, pk="key", not_null={"chat_id"})
    db.table("search_docs").create_index(["chat_id", "message_id"])


def rebuild(db: SqliteDatabase) -> None:
    """Index all that is there afresh."""
    db.execute("insert into search (search) values ('delete-all')")
    db.execute("delete from search_docs")
    for chat_id, title, created_at in db.execute("select id, title, created_at from chats where title != ''"):
        add(db, chat_id, None, title, created_at)
    for chat_id, message_id, content, created_at in db.execute(
        "select chat_id, id, content, created_at from messages where turn_type = 'main' and content != ''"
    ):
        add(db, chat_id, message_id, content, created_at)


def add(db: SqliteDatabase, chat_id: int, message_id: int | None, text: str, created_at: str) -> None:
    """Index one message, or a chat's title."""
    if text.strip():
        _add(db, _key(chat_id, message_id, created_at), chat_id, message_id, text)


def add_all(db: SqliteDatabase, documents: Iterable[Document]) -> None:
    """Index many at once, the oldest first: FTS5 writes what it has gathered whenever an older one follows a newer."""
    keyed = [(_key(one.chat_id, one.message_id, one.created_at), one) for one in documents if one.text.strip()]
    for key, one in sorted(keyed, key=lambda pair: pair[0]):
        _add(db, key, one.chat_id, one.message_id, one.text)


def merge_less(db: SqliteDatabase) -> None:
    """From now on, pieces of the index are put together seldom: for who writes very much. End it with `merge_often`."""
    db.conn.execute("insert into search (search, rank) values ('automerge', ?)", (_SELDOM,))


def merge_often(db: SqliteDatabase) -> None:
    """As it is when little is written: few pieces, so that a search is quick."""
    db.conn.execute("insert into search (search, rank) values ('automerge', ?)", (_OFTEN,))


def merge_some(db: SqliteDatabase) -> bool:
    """Put a few pieces of the index together. Whether there may be more to do."""
    before = db.conn.total_changes
    db.conn.execute("insert into search (search, rank) values ('merge', ?)", (_PAGES,))
    return db.conn.total_changes - before >= 2  # As SQLite documents it.


def _key(chat_id: int, message_id: int | None, created_at: str) -> int:
    return (_milliseconds(created_at) << 20) | ((message_id or chat_id) & 0xFFFFF)


def _add(db: SqliteDatabase, key: int, chat_id: int, message_id: int | None, text: str) -> None:
    document = "insert or ignore into search_docs (key, message_id, chat_id) values (?, ?, ?)"
    while not db.conn.execute(document, (key, message_id, chat_id)).rowcount:
        key += 1
    db.conn.execute("insert into search (rowid, text) values (?, ?)", (key, indexed(text)))


def remove_title(db: SqliteDatabase, chat_id: int, title: str) -> None:
    """Take a chat's title out, as it was indexed."""
    for (key,) in db.execute(
        "select key from search_docs where chat_id = ? and message_id is null", [chat_id]
    ).fetchall():
        _remove(db, key, title)


def remove_chat(db: SqliteDatabase, chat_id: int) -> None:
    """Take a chat's messages and title out. To be called while they are still there."""
    for key, text in list(_documents(db, chat_id)):
        _remove(db, key, text)


def remove_messages(db: SqliteDatabase, message_ids: Iterable[int]) -> None:
    """Take single messages out. To be called while they are still there."""
    query = (
        "select key, content from search_docs join messages on messages.id = message_id "
        "where search_docs.chat_id = messages.chat_id and message_id = ?"
    )
    for message_id in message_ids:
        for key, text in db.conn.execute(query, (message_id,)).fetchall():
            _remove(db, key, text)


def squeeze(db: SqliteDatabase) -> None:
    """Let go of words that were taken out but still stand in the index; a very large one does so by and by."""
    (count,) = db.execute(
        "select count(*) from (select 1 from search_docs limit ?)", [_QUICKLY_SQUEEZED + 1]
    ).fetchone()
    if count <= _QUICKLY_SQUEEZED:
        db.conn.execute("insert into search (search) values ('optimize')")


def _documents(db: SqliteDatabase, chat_id: int) -> Iterator[tuple[int, str]]:
    yield from db.execute(
        "select key, coalesce(messages.content, chats.title) from search_docs "
        "join chats on chats.id = search_docs.chat_id left join messages on messages.id = message_id "
        "where search_docs.chat_id = ?",
        [chat_id],
    )


def _remove(db: SqliteDatabase, key: int, text: str) -> None:
    # The index keeps no text of its own: to take words out, it has to be told which they were.
    db.conn.execute("insert into search (search, rowid, text) values ('delete', ?, ?)", (key, indexed(text)))
    db.conn.execute("delete from search_docs where key = ?", (key,))


def _match(terms: list[Term], *, first_open: int) -> str:
    """The query as FTS5 takes it; `first_open`: from which term on typed words may go on."""
    return " AND ".join(
        f'"{" ".join(term.tokens)}"' + (" *" if term.open and (place >= first_open or not term.typed) else "")
        for place, term in enumerate(terms)
    )


def _milliseconds(created_at: str) -> int:
    try:
        return min(max(0, int(datetime.fromisoformat(created_at).timestamp() * 1000)), _LATEST)
    except (ValueError, OverflowError):
        return 0
