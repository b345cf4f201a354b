"""Chats as llm's database (`logs.db`) holds them, in its three shapes.

The oldest has one table, `logs` (or `log`); then came `conversations` and `responses`; since 0.32 a tree of `messages`
shared by `threads`, with a row in `turns` for each call. A database keeps its older tables when it moves on, and a chat
that went on in the newer ones is told again there from its beginning: equal words in equal places become one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from ...store.records import GivenChat
from ..report import MEDIA, THOUGHTS, TOOLS, Skips
from .tree import Said, entries, grow, latest, moment, title, words

ORIGIN = "llm"


def is_mine(tables: dict[str, set[str]]) -> bool:
    return bool(_old_table(tables)) or "conversation_id" in tables.get("responses", set()) or _has_threads(tables)


def chats(db: sqlite3.Connection, tables: dict[str, set[str]], skips: Skips, written_at: str) -> Iterator[GivenChat]:
    old = _old_table(tables)
    if old:
        query = f"select distinct coalesce(chat_id, id) as root from {old} order by root"
        for (root,) in db.execute(query).fetchall():
            rows = db.execute(f"select * from {old} where id = ? or chat_id = ? order by id", [root, root]).fetchall()
            yield _chat(f"{old} {root}", "", _linear([dict(row) for row in rows], {}), written_at)
    names = _names(db, tables)
    for chat_id, name in names.items():
        said = _legacy(db, tables, chat_id)
        if _has_threads(tables):
            said += _thread(db, tables, chat_id, skips)
        yield _chat(chat_id, name, said, written_at)


def _old_table(tables: dict[str, set[str]]) -> str:
    return next((t for t in ("logs", "log") if {"id", "prompt", "response", "chat_id"} <= tables.get(t, set())), "")


def _has_threads(tables: dict[str, set[str]]) -> bool:
    return "tip_message_hash" in tables.get("threads", set()) and "parent_hash" in tables.get("messages", set())


def _names(db: sqlite3.Connection, tables: dict[str, set[str]]) -> dict[str, str]:
    """Every conversation with its name, oldest first: its ids grow with time."""
    names: dict[str, str] = {}
    if "conversation_id" in tables.get("responses", set()):
        query = "select distinct conversation_id from responses where conversation_id is not null"
        names = {str(row[0]): "" for row in db.execute(query).fetchall()}
        names |= {str(row[0]): words(row[1]) for row in db.execute("select id, name from conversations").fetchall()}
    if _has_threads(tables):
        for identity, name in db.execute("select id, name from threads").fetchall():
            names[str(identity)] = words(name) or names.get(str(identity), "")
    return dict(sorted(names.items()))


def _chat(origin_id: str, name: str, said: list[Said], written_at: str) -> GivenChat:
    system = next((entry.text for entry in said if entry.role == "system" and entry.text), "")
    for entry in said:
        entry.text = "" if entry.role == "system" else entry.text
    begun = next((entry.created_at for entry in said if entry.created_at), written_at)
    messages, head = grow(said, said[-1].key if said else None, begun)
    return GivenChat(
        origin=ORIGIN,
        origin_id=origin_id,
        title=title(name) or title(messages[0].content if messages else "")[:60],
        messages=messages,
        head=head,
        system=system,
        created_at=begun,
        updated_at=latest(messages),
    )


def _legacy(db: sqlite3.Connection, tables: dict[str, set[str]], chat_id: str) -> list[Said]:
    if "conversation_id" not in tables.get("responses", set()):
        return []
    rows = db.execute("select * from responses where conversation_id = ? order by id", [chat_id]).fetchall()
    fragments: dict[str, list[str]] = {}
    if "prompt_fragments" in tables:
        query = (
            "select response_id, content from prompt_fragments join fragments on fragments.id = fragment_id "
            'where response_id in (select id from responses where conversation_id = ?) order by "order"'
        )
        for response_id, content in db.execute(query, [chat_id]).fetchall():
            fragments.setdefault(response_id, []).append(words(content))
    return _linear([dict(row) for row in rows], fragments)


def _linear(rows: list[dict[str, Any]], fragments: dict[str, list[str]]) -> list[Said]:
    said: list[Said] = []
    for row in rows:
        at = moment(row.get("datetime_utc") or row.get("timestamp_utc") or row.get("timestamp"))
        prompt = "\n".join([*fragments.get(row["id"], []), words(row["prompt"])])
        for part, role, text in (("s", "system", row.get("system")), ("q", "user", prompt), ("a", "assistant", None)):
            entry = Said(f"{row['id']} {part}", said[-1].key if said else None, role, words(text), created_at=at)
            if role == "assistant":
                entry.text, entry.model = words(row["response"]), words(row.get("model"))
            said.append(entry)
    return said


def _thread(db: sqlite3.Connection, tables: dict[str, set[str]], chat_id: str, skips: Skips) -> list[Said]:
    """All messages that lead to any turn of a thread; the last one is the end of the branch it is at."""
    turns = db.execute("select * from turns where thread_id = ? order by id", [chat_id]).fetchall()
    tips = [(turn["tip_message_hash"], turn["datetime_utc"], turn["model"]) for turn in turns]
    tips += [(row[0], "", "") for row in db.execute("select tip_message_hash from threads where id = ?", [chat_id])]
    said: dict[str, Said] = {}
    for tip, at, model in tips:
        chain: list[Said] = []
        key = tip
        while key and key not in said:
            row = db.execute("select parent_hash, role from messages where hash = ?", [key]).fetchone()
            if row is None:
                break
            entry = Said(key, row["parent_hash"], words(row["role"]), created_at=moment(at))
            entry.text = _text(db, tables, key, entry.role, skips)
            entry.model = words(model) if entry.role == "assistant" else ""
            chain.append(entry)
            said[key] = entry
            key = row["parent_hash"]
        for entry in chain:
            if entry.role == "tool":
                entry.text = ""
    if tips and tips[-1][0] in said:
        said[tips[-1][0]] = said.pop(tips[-1][0])
    return list(said.values())


def _text(db: sqlite3.Connection, tables: dict[str, set[str]], key: str, role: str, skips: Skips) -> str:
    texts = []
    for row in db.execute("select type, text, payload from parts where message_hash = ? order by position", [key]):
        kind = row["type"]
        if kind == "text":
            texts.append(words(row["text"]) or _borrowed(db, row["payload"]))
        elif kind == "attachment":
            skips.add(MEDIA)
            texts.append("[file]")
        elif kind == "reasoning":
            skips.add(THOUGHTS)
        else:
            skips.add(TOOLS)
    return "\n\n".join(text for text in texts if text.strip())


def _borrowed(db: sqlite3.Connection, payload: Any) -> str:
    """Text that is partly kept elsewhere: a list of literal pieces and of fragments."""
    try:
        pieces = entries(json.loads(words(payload) or "{}").get("text_ref"))
    except (ValueError, AttributeError, RecursionError):
        return ""
    text = ""
    for piece in pieces:
        if "literal" in piece:
            text += words(piece["literal"])
        else:
            row = db.execute("select content from fragments where id = ?", [piece.get("fragment")]).fetchone()
            text += words(row[0]) if row is not None else ""
    return text
