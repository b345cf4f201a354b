"""Finding all that hangs on what is to be forgotten, and taking it out of the tables.

It must never know about files or adapters' weights.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field, fields
from typing import Any

from sqlite_utils import Database as SqliteDatabase

from ..errors import NotFoundError
from ..language import _
from . import drafts, search
from .exchanges import Cut, Node, cut
from .many import change_of, delete_of, first_column, rows_of
from .rows import TEACHING

_SAID = "created_at, role, content"


@dataclass(frozen=True)
class Request:
    """What is to be forgotten.

    Attributes:
        chats, messages: ids.
        since: everything from this moment on (as it is stored: UTC, ISO 8601); "" for none.
        containing: everything with this text in it, capitals or not; "" for none.
    """

    chats: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    since: str = ""
    containing: str = ""


@dataclass
class Going:
    """What goes, by id, and what that changes.

    Attributes:
        chats: chats that go as a whole.
        messages: all messages that go, those of whole chats too.
        signals, hints: what goes of them beside what hangs on a message that goes.
        taught: replies whose lesson had a part of it: they, those after, those before.
        cuts: chats that stay, with what is cut out of them.
        titles, systems, drafts, samplings: chats that stay and lose these.
        new_drafts: names of what stands typed for a chat that is not begun yet, one for each window, and beside the
            draft of a chat.
        prompts: kept replies whose system prompt has the text in it.
        kept_files: calls of tools that keep a file's former content, or worked in a folder, with the text in it: they
            can be undone no more.
        allowed: chats that stay, whose workspace or whose allowed commands have the text in them.
        oldest: when the oldest of it was said; "" if nothing goes.
    """

    chats: set[int] = field(default_factory=set)
    messages: set[int] = field(default_factory=set)
    signals: set[int] = field(default_factory=set)
    hints: set[int] = field(default_factory=set)
    taught: set[int] = field(default_factory=set)
    cuts: dict[int, Cut] = field(default_factory=dict)
    titles: set[int] = field(default_factory=set)
    systems: set[int] = field(default_factory=set)
    drafts: set[int] = field(default_factory=set)
    new_drafts: set[str] = field(default_factory=set)
    samplings: set[int] = field(default_factory=set)
    prompts: set[int] = field(default_factory=set)
    kept_files: set[int] = field(default_factory=set)
    allowed: set[int] = field(default_factory=set)
    oldest: str = ""

    @property
    def nothing(self) -> bool:
        return not any(getattr(self, part.name) for part in fields(self) if part.name not in ("taught", "oldest"))


def find(db: SqliteDatabase, request: Request) -> Going:
    """All that a request means, nothing changed yet.

    Raises:
        NotFoundError: a chat or a message is not there.
    """
    going = Going()
    _chosen(db, request, going)
    known = -1
    while known != len(going.messages):  # A copy has copies of what goes along, too.
        known = len(going.messages)
        going.messages |= _copies(db, going.messages)
        _cut_chats(db, going)
    _signals_and_hints(db, request, going)
    if request.containing:
        _beside(db, request.containing.casefold(), going)
    going.taught |= going.messages
    times = [time for (time,) in rows_of(db, "created_at", "messages", "id", going.messages)]
    times += [time for (time,) in rows_of(db, "created_at", "hints", "id", going.hints)]
    times += [time for (time,) in rows_of(db, "created_at", "chats", "id", going.chats | going.titles | going.systems)]
    times += [
        time for (time,) in rows_of(db, "created_at", "chats", "id", going.drafts | going.samplings | going.allowed)
    ]
    times += [time for (time,) in rows_of(db, "created_at", "messages", "id", going.prompts)]
    times += [time for (time,) in rows_of(db, "created_at", "signals", "id", going.signals)]
    times += [time for (time,) in rows_of(db, "created_at", "tool_calls", "id", going.kept_files)]
    times += ["0"] * bool(going.new_drafts)  # Nobody knows since when it stands there.
    going.oldest = min(times, default="")
    return going


def texts(db: SqliteDatabase, going: Going) -> list[str]:
    """What was said in all that goes, to be looked for elsewhere."""
    found = [text for (text,) in rows_of(db, "content", "messages", "id", going.messages)]
    found += [text for (text,) in rows_of(db, "text", "hints", "id", going.hints)]
    found += [text for (text,) in rows_of(db, "title", "chats", "id", going.chats | going.titles)]
    found += [text for (text,) in rows_of(db, "hint", "signals", "message_id", going.messages)]
    return sorted({text.strip() for text in found if text and text.strip()})


def counts(db: SqliteDatabase, going: Going) -> dict[str, int]:
    """How much of what goes, by kind; settings are those of chats, of single replies and of calls of tools. Messages
    are those that a person sees: beside them, a chat's questions for its title go. Where these are all that goes, they
    are counted."""
    signals = {identity for (identity,) in rows_of(db, "id", "signals", "message_id", going.messages)}
    hints = {identity for (identity,) in rows_of(db, "id", "hints", "message_id", going.messages)}
    hints |= {identity for (identity,) in rows_of(db, "id", "hints", "chat_id", going.chats)}
    seen = sum(kind == "main" for (kind,) in rows_of(db, "turn_type", "messages", "id", going.messages))
    return {
        "chats": len(going.chats),
        "messages": seen if seen or going.chats else len(going.messages),
        "signals": len(signals | going.signals),
        "hints": len(hints | going.hints),
        "samples": len(list(rows_of(db, "message_id", "samples", "message_id", going.taught))),
        "drafts": len(going.drafts)
        + len(going.new_drafts)
        + sum(bool(draft) for (draft,) in rows_of(db, "draft", "chats", "id", going.chats)),
        "titles": len(going.titles),
        "settings": sum(
            map(len, (going.systems, going.samplings, going.prompts, going.allowed, going.kept_files)),
        ),
    }


def erase(db: SqliteDatabase, going: Going) -> None:
    """Take it all out. To be called in a transaction with secure_delete on."""
    for chat_id in sorted(going.chats):
        search.remove_chat(db, chat_id)
        drafts.remove(db, chat_id)
    for chat_id in sorted(going.titles):
        search.remove_title(db, chat_id, *next(rows_of(db, "title", "chats", "id", [chat_id])))
    search.remove_messages(db, going.messages)
    for chat_id, change in going.cuts.items():
        for message_id, reply_id in change.joined.items():
            db.conn.execute("update messages set parent_id = ? where id = ?", (reply_id, message_id))
        for message_id in change.after | change.before:
            # Said with it in view, or about to be read with the wrong next state: it teaches no longer.
            db.conn.execute("update messages set learn = ? where id = ?", (TEACHING["never"], message_id))
        for message_id in change.after:
            db.conn.execute("update messages set prompt_ids = null where id = ?", (message_id,))
        _move_head(db, chat_id, change)
    for table in ("pieces", "signals", "samples"):
        delete_of(db, table, "message_id", going.messages)
    for column in ("reply_id", "result_id"):
        delete_of(db, "tool_calls", column, going.messages)
    change_of(db, "tool_calls", "before = null, after_sha256 = '', workspace = ''", going.kept_files)
    change_of(db, "chats", "workspace = '', always = '[]'", going.allowed)
    delete_of(db, "samples", "message_id", going.taught)
    delete_of(db, "signals", "id", going.signals)
    delete_of(db, "hints", "message_id", going.messages)
    delete_of(db, "hints", "chat_id", going.chats)
    delete_of(db, "hints", "id", going.hints)
    change_of(db, "chats", "head_id = null", going.chats)
    change_of(db, "messages", "parent_id = null", going.messages)
    delete_of(db, "messages", "id", going.messages)
    db.conn.execute("delete from toolsets where not exists (select 1 from messages where toolset_id = toolsets.id)")
    delete_of(db, "chats", "id", going.chats)
    change_of(db, "chats", "title = ''", going.titles)
    change_of(db, "chats", "system = ''", going.systems)
    change_of(db, "chats", "sampling = '{}'", going.samplings)
    change_of(db, "chats", "draft = ''", going.drafts)
    for name in going.new_drafts:
        db.conn.execute("delete from flags where name = ?", (name,))
    change_of(db, "messages", "system = ''", going.prompts)
    db.conn.execute("insert into search (search) values ('optimize')")


def where_found(db: SqliteDatabase, text: str) -> list[str]:
    """Tables and columns in which a text still stands, as "table.column"."""
    found = []
    for table in db.table_names():
        if table.startswith(("search", "sqlite_")):
            continue
        for column in db.table(table).columns_dict:
            query = f'select "{column}" from "{table}" where typeof("{column}") = ?'
            if any(text in value.casefold() for (value,) in db.conn.execute(query, ("text",))):
                found.append(f"{table}.{column}")
    return found


def _chosen(db: SqliteDatabase, request: Request, going: Going) -> None:
    for kind, identities in (("chat", request.chats), ("message", request.messages)):
        known = {identity for (identity,) in rows_of(db, "id", f"{kind}s", "id", identities)}
        for identity in identities:
            if identity not in known:
                raise NotFoundError(
                    _("There is no chat {id}. `claw-local history list` shows the chats there are.", id=identity)
                    if kind == "chat"
                    else _(
                        "There is no message {id}. `claw-local history show CHAT` shows the messages of a chat.",
                        id=identity,
                    )
                )
    going.chats.update(request.chats)
    going.messages.update(request.messages)
    if request.since:
        going.chats.update(first_column(db, "select id from chats where created_at >= ?", request.since))
        going.messages.update(first_column(db, "select id from messages where created_at >= ?", request.since))
    if request.containing:
        text = request.containing.casefold()
        for identity, content in db.conn.execute("select id, content from messages"):
            if text in content.casefold():
                going.messages.add(identity)
        for identity, content in db.conn.execute("select message_id, text from pieces"):
            if text in content.casefold():
                going.messages.add(identity)
        # In the reply itself it may stand with the escapes of JSON.
        query = "select reply_id, title, path, arguments from tool_calls"
        for identity, title, path, arguments in db.conn.execute(query):
            if any(text in words.casefold() for words in (title, path or "", *_strings(json.loads(arguments)))):
                going.messages.add(identity)
    going.messages.update(message_id for (message_id,) in rows_of(db, "id", "messages", "chat_id", going.chats))


def _strings(value: Any) -> list[str]:
    """All texts in a JSON value, names too."""
    found, waiting = [], [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, (list, dict)):
            waiting += [*part, *part.values()] if isinstance(part, dict) else part
    return found


def _copies(db: SqliteDatabase, messages: Collection[int]) -> set[int]:
    """The same messages in copies of their chats."""
    said = {
        (moment, role, content) for moment, role, content in rows_of(db, _SAID, "messages", "id", messages) if content
    }
    moments = {moment for moment, _, _ in said}
    rows = db.conn.execute("select id, created_at from messages").fetchall()
    same = [identity for identity, moment in rows if moment in moments and identity not in messages]
    return {identity for identity, *what in rows_of(db, f"id, {_SAID}", "messages", "id", same) if tuple(what) in said}


def _cut_chats(db: SqliteDatabase, going: Going) -> None:
    for chat_id in {chat for (chat,) in rows_of(db, "chat_id", "messages", "id", going.messages)} - going.chats:
        query = "select id, parent_id, role, turn_type = 'side' from messages where chat_id = ?"
        nodes = [Node(*row) for row in db.conn.execute(query, (chat_id,)).fetchall()]
        change = cut(nodes, going.messages & {node.id for node in nodes})
        going.messages |= change.gone
        if change.empty:
            going.chats.add(chat_id)
            continue
        going.cuts[chat_id] = change
        going.taught |= change.after | change.before
        if change.early:
            going.titles.add(chat_id)
    titled = first_column(db, "select id from chats where title != ''")
    going.titles &= set(titled)


def _signals_and_hints(db: SqliteDatabase, request: Request, going: Going) -> None:
    """Those that came from what goes but hang on a reply that stays, and those that were asked for themselves."""
    before = {reply for change in going.cuts.values() for reply in change.before}
    # The judge and tools read the next state; what the person said outright stands by itself.
    sources = list(rows_of(db, "id, source", "signals", "message_id", before))
    going.signals |= {identity for identity, source in sources if source in ("judge", "tool")}
    edits = "parent_id, role = 'assistant' and coalesce(length(response_ids), 0) = 0"
    edited = {parent for parent, edit in rows_of(db, edits, "messages", "id", going.messages) if parent and edit}
    for (identity,) in rows_of(db, "id", "messages", "parent_id", edited):
        if identity not in going.messages:
            query = "select id from signals where message_id = ? and source = 'edit'"
            going.signals.update(first_column(db, query, identity))
    if request.since:
        going.signals.update(first_column(db, "select id from signals where created_at >= ?", request.since))
        going.hints.update(first_column(db, "select id from hints where created_at >= ?", request.since))
    if request.containing:
        text = request.containing.casefold()
        for table, column, into in (("signals", "hint", going.signals), ("hints", "text", going.hints)):
            rows = db.conn.execute(f"select id, {column} from {table} where {column} != ''").fetchall()
            into.update(identity for identity, words in rows if text in words.casefold())
    for reply, words in list(rows_of(db, "message_id, hint", "signals", "id", going.signals)):
        going.taught.add(reply)
        if words:
            said_so = first_column(db, "select id from signals where message_id = ? and hint = ?", reply, words)
            if going.signals.issuperset(said_so):
                query = "select id from hints where message_id = ? and text = ?"
                going.hints.update(first_column(db, query, reply, words))
    going.taught.update(reply for (reply,) in rows_of(db, "message_id", "hints", "id", going.hints) if reply)


def _beside(db: SqliteDatabase, text: str, going: Going) -> None:
    """Where a text stands outside of messages, signals and hints."""
    for column, into in (
        ("title", going.titles),
        ("system", going.systems),
        ("draft", going.drafts),
        ("sampling", going.samplings),
        ("workspace", going.allowed),
        ("always", going.allowed),
    ):
        rows = db.conn.execute(f"select id, {column} from chats").fetchall()
        into.update(chat for chat, words in rows if text in words.casefold() and chat not in going.chats)
    for identity, words in db.conn.execute("select id, system from messages where system != ''").fetchall():
        if text in words.casefold() and identity not in going.messages:
            going.prompts.add(identity)
    for identity, kept, folder in db.conn.execute("select id, before, workspace from tool_calls").fetchall():
        wide = (kept or b"").startswith((b"\xff\xfe", b"\xfe\xff"))
        words = (kept or b"").decode("utf-16" if wide else "utf-8", "replace")
        if text in words.casefold() or text in (folder or "").casefold():
            going.kept_files.add(identity)
    query = "select name, value from flags where name = 'draft' or name like 'draft/%' or name like ?"
    for name, words in db.conn.execute(query, (drafts.BESIDE,)):
        if text in words.casefold():
            going.new_drafts.add(name)


def _move_head(db: SqliteDatabase, chat_id: int, change: Cut) -> None:
    """Where the branch that was shown ends in what goes, show the newest one."""
    query = "select head_id from chats where id = ?"
    (head,) = db.conn.execute(query, (chat_id,)).fetchone()
    if head is None or head in change.gone:
        marks = json.dumps(sorted(change.gone))
        newest = (
            "select max(id) from messages where chat_id = ? and turn_type = 'main' "
            "and id not in (select value from json_each(?))"
        )
        (head,) = db.conn.execute(newest, (chat_id, marks)).fetchone()
        db.conn.execute("update chats set head_id = ? where id = ?", (head, chat_id))
