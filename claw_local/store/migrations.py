"""The schema as an ordered list of named functions, each applied once, in its own transaction.

Never change one that has shipped: add another at the end. Foreign keys are not enforced while one runs, and checked
before it is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlite_utils import Database

from . import search

Migration = Callable[[Database], None]


def m001_chats(db: Database) -> None:
    db.table("chats").create(
        {
            "id": int,
            "title": str,
            "model": str,
            "system": str,
            "learn": int,
            "archived": int,
            "head_id": int,
            "created_at": str,
            "updated_at": str,
        },
        pk="id",
        not_null={"title", "model", "system", "learn", "archived", "created_at", "updated_at"},
    )
    db.table("chats").create_index(["updated_at"])
    db.table("messages").create(
        {
            "id": int,
            "chat_id": int,
            "parent_id": int,
            "role": str,
            "content": str,
            "state": str,
            "turn_type": str,
            "learn": int,
            "prompt_ids": bytes,
            "response_ids": bytes,
            "logprobs": bytes,
            "sampling": str,
            "model": str,
            "model_sha256": str,
            "adapter_id": int,
            "hint_ids": str,
            "timings": str,
            "finish_reason": str,
            "writer": str,
            "created_at": str,
        },
        pk="id",
        not_null={"chat_id", "role", "content", "state", "turn_type", "learn", "created_at"},
        foreign_keys=[("chat_id", "chats", "id"), ("parent_id", "messages", "id")],
    )
    db.table("messages").create_index(["chat_id"])
    db.table("messages").create_index(["parent_id"])
    db.table("messages").create_index(["state"])
    db.table("messages").enable_fts(["content"], create_triggers=True, tokenize="unicode61 remove_diacritics 2")
    # Text that has been shown of a reply that is still being written: appended piece by piece, so that a killed
    # process loses nothing that was on the screen, then folded into the message and deleted.
    db.table("pieces").create(
        {"id": int, "message_id": int, "text": str},
        pk="id",
        not_null={"message_id", "text"},
        foreign_keys=[("message_id", "messages", "id")],
    )
    db.table("pieces").create_index(["message_id"])


def m002_signals(db: Database) -> None:
    db.table("signals").create(
        {
            "id": int,
            "message_id": int,
            "source": str,
            "score": int,
            "hint": str,
            "probabilities": str,
            "judge_version": str,
            "state": str,
            "created_at": str,
        },
        pk="id",
        not_null={"message_id", "source", "score", "state", "created_at"},
        foreign_keys=[("message_id", "messages", "id")],
    )
    db.table("signals").create_index(["message_id"])
    db.table("hints").create(
        {
            "id": int,
            "text": str,
            "message_id": int,
            "chat_id": int,
            "scope": str,
            "state": str,
            "uses": int,
            "created_at": str,
        },
        pk="id",
        not_null={"text", "scope", "state", "uses", "created_at"},
        foreign_keys=[("message_id", "messages", "id"), ("chat_id", "chats", "id")],
    )
    db.table("hints").create_index(["state"])
    db.table("hints").create_index(["message_id"])
    db.table("hints").create_index(["chat_id"])


def m003_learning(db: Database) -> None:
    db.table("samples").create(
        {"message_id": int, "split": str, "score": int, "hint": str, "times_used": int, "created_at": str},
        pk="message_id",
        not_null={"split", "times_used", "created_at"},
        foreign_keys=[("message_id", "messages", "id")],
    )
    db.table("adapters").create(
        {
            "id": int,
            "parent_id": int,
            "name": str,
            "model_sha256": str,
            "architecture": str,
            "peft_dir": str,
            "gguf_path": str,
            "sha256": str,
            "recipe": str,
            "metrics": str,
            "lineage": str,
            "state": str,
            "reason": str,
            "created_at": str,
        },
        pk="id",
        not_null={"parent_id", "model_sha256", "state", "created_at"},
    )
    db.table("adapters").create_index(["state"])
    db.table("runs").create(
        {
            "id": int,
            "adapter_id": int,
            "state": str,
            "phase": str,
            "progress": float,
            "detail": str,
            "process": str,
            "result": str,
            "started_at": str,
            "finished_at": str,
        },
        pk="id",
        not_null={"state", "started_at"},
        foreign_keys=[("adapter_id", "adapters", "id")],
    )
    db.table("runs").create_index(["state"])
    db.table("flags").create({"name": str, "value": str}, pk="name", not_null={"value"})


def m004_chat_settings(db: Database) -> None:
    # `sampling`: what this chat changes of the settings' sampling, as JSON. `deleted_at`: empty, or since when a chat
    # waits to be removed for good. `origin` and `origin_id`: where an imported chat came from, so that it is never
    # doubled.
    chats = db.table("chats")
    chats.add_column("sampling", str, not_null_default="{}")
    for column in ("draft", "deleted_at", "origin", "origin_id"):
        chats.add_column(column, str, not_null_default="")
    db.execute("create unique index chats_origin on chats (origin, origin_id) where origin != ''")


def m005_history(db: Database) -> None:
    # `origin_id`: which message of the source an imported one is.
    db.table("messages").add_column("origin_id", str, not_null_default="")
    db.execute("drop index if exists idx_chats_updated_at")
    db.execute("create index chats_shown on chats (archived, updated_at desc, id desc) where deleted_at = ''")
    db.execute("create index chats_deleted on chats (deleted_at) where deleted_at != ''")
    # One index for all writing systems, newest first, takes the place of the first one.
    db.table("messages").disable_fts()
    search.create(db)
    search.rebuild(db)


def m006_reply_system(db: Database) -> None:
    # The system prompt a reply was written under: the chat's may be changed later.
    db.table("messages").add_column("system", str, not_null_default="")


def m007_numbers_for_good(db: Database) -> None:
    # A number that was given once is never given again: what remembers the number of something deleted (an adapter its
    # lessons, a reply its hints, a file or a script its chat) must never find something else there.
    for table in _NUMBERED:
        _never_again(db, table)
    for table, remembered in _REMEMBERED.items():
        (highest,) = db.execute(f"select max(n) from (select max(id) n from {table} union all {remembered})").fetchone()
        if highest:
            db.conn.execute("delete from sqlite_sequence where name = ?", (table,))
            db.conn.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table, highest))


_NUMBERED = ("chats", "messages", "signals", "hints", "adapters", "runs")
_REMEMBERED = {
    "messages": "select value from adapters, json_each(iif(json_valid(lineage), lineage, '[]'))",
    "hints": "select value from messages, json_each(iif(json_valid(hint_ids), hint_ids, '[]'))",
    "adapters": "select adapter_id from messages union all select parent_id from adapters",
}
"""Where the numbers of rows that are gone may still stand, in SQL."""


def _never_again(db: Database, table: str) -> None:
    """Make a table's ids AUTOINCREMENT: SQLite takes no other way than to write the table once more."""
    (made,) = db.execute("select sql from sqlite_master where type = 'table' and name = ?", [table]).fetchone()
    made, heads = re.subn(r"^CREATE TABLE\s+\S+", f'CREATE TABLE "{table}_new"', made, count=1)
    made, keys = re.subn(r"INTEGER PRIMARY KEY(?! AUTOINCREMENT)", "INTEGER PRIMARY KEY AUTOINCREMENT", made, count=1)
    if not heads or not keys:
        return
    beside = "select sql from sqlite_master where tbl_name = ? and type in ('index', 'trigger') and sql is not null"
    others = [sql for (sql,) in db.execute(beside, [table]).fetchall()]
    db.conn.execute(made)
    db.conn.execute(f"insert into {table}_new select * from {table}")
    db.conn.execute(f"drop table {table}")
    db.conn.execute(f"alter table {table}_new rename to {table}")
    for sql in others:
        db.conn.execute(sql)


def m008_exams(db: Database) -> None:
    # What each judge scored in each question's exam. `votes` of a signal: the judge's single votes, as JSON.
    db.table("exams").create(
        {
            "model": str,
            "adapter": str,
            "version": str,
            "question": str,
            "auc": float,
            "accuracy": float,
            "threshold": float,
            "examples": int,
            "passed": int,
            "groups": str,
            "seconds_per_example": float,
            "created_at": str,
        },
        pk=("model", "adapter", "version", "question"),
        not_null={"auc", "accuracy", "threshold", "examples", "passed", "groups", "created_at"},
    )
    db.table("signals").add_column("votes", str, not_null_default="[]")


def m009_chat_adapter(db: Database) -> None:
    # The adapter that a chat keeps to: empty is the one in use, 0 the base model.
    db.table("chats").add_column("adapter_id", int)


def m010_served(db: Database) -> None:
    # Programs that ask over HTTP: their keys (hashes only), their sessions, and the fingerprints by which a message is
    # known again in the history that a client repeats.
    db.execute(
        "create table served_keys (id integer primary key autoincrement, name text not null unique, "
        "hash text not null unique, learn integer not null, created_at text not null, used_at text not null)"
    )
    db.execute(
        "create table sessions (chat_id integer primary key references chats (id) on delete cascade, "
        "key_id integer not null, name text not null, last_at text not null, ended integer not null)"
    )
    db.execute("create index sessions_named on sessions (key_id, name)")
    db.execute(
        "create table session_prints (key_id integer not null, print text not null, "
        "message_id integer not null references messages (id) on delete cascade, "
        "primary key (key_id, print, message_id)) without rowid"
    )
    db.execute("create index session_prints_message on session_prints (message_id)")


def m011_tools(db: Database) -> None:
    # `workspace`: the folder that the chat's tools may touch; empty: it has no tools. `always`: what the person allowed
    # for the whole chat, as a JSON list. `toolset_id`: the tools a reply was told of.
    chats = db.table("chats")
    chats.add_column("workspace", str, not_null_default="")
    chats.add_column("always", str, not_null_default="[]")
    db.table("messages").add_column("toolset_id", int)
    db.table("toolsets").create({"id": int, "specs": str}, pk="id", not_null={"specs"})
    db.table("toolsets").create_index(["specs"], unique=True)
    # One row for each call of a tool. `before`: what a written file held; null where it was not there, or was not
    # written.
    db.table("tool_calls").create(
        {
            "id": int,
            "chat_id": int,
            "reply_id": int,
            "result_id": int,
            "name": str,
            "arguments": str,
            "title": str,
            "decision": str,
            "state": str,
            "score": int,
            "path": str,
            "before": bytes,
            "after_sha256": str,
            "workspace": str,
            "created_at": str,
        },
        pk="id",
        not_null={"chat_id", "reply_id", "result_id", "name", "arguments", "title", "decision", "state", "created_at"},
        foreign_keys=[("chat_id", "chats", "id"), ("reply_id", "messages", "id"), ("result_id", "messages", "id")],
    )
    for column in ("chat_id", "reply_id", "result_id"):
        db.table("tool_calls").create_index([column])


def m012_steps(db: Database) -> None:
    # Which step of its trajectory a sample was, from 0, and what it was worth there; null for a turn without tools.
    db.table("samples").add_column("step", int)
    db.table("samples").add_column("advantage", float)


def m013_going_on(db: Database) -> None:
    # What a run that was left needs to go on, and what is known of one that went wrong. `checkpoint`: where it can go
    # on, as JSON, empty if nowhere; `lineage`: the replies it learns from; `failures`, `fallbacks`: JSON lists;
    # `asked`: empty, or what the run is asked to do; `seen_at`: its last sign of life.
    runs = db.table("runs")
    for column, default in (
        ("started_by", "person"),
        ("inputs", ""),
        ("checkpoint", ""),
        ("lineage", "[]"),
        ("failures", "[]"),
        ("fallbacks", "[]"),
        ("asked", ""),
        ("seen_at", ""),
    ):
        runs.add_column(column, str, not_null_default=default)
    runs.add_column("economy", int, not_null_default=0)
    runs.add_column("seconds_left", float)


MIGRATIONS: tuple[Migration, ...] = (
    m001_chats,
    m002_signals,
    m003_learning,
    m004_chat_settings,
    m005_history,
    m006_reply_system,
    m007_numbers_for_good,
    m008_exams,
    m009_chat_adapter,
    m010_served,
    m011_tools,
    m012_steps,
    m013_going_on,
)
