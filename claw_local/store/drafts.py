"""Where it stands who is typing in a chat, and what other windows have typed in it. It must never know what is typed.

One window's text of a chat is the chat's `draft`; the flag `drafting/CHAT` says which window's, as `WINDOW/PROCESS`.
What another window types there meanwhile stands in a flag `drafting/CHAT/WINDOW/PROCESS`; without a process nobody has
it.
"""

from __future__ import annotations

from sqlite_utils import Database as SqliteDatabase

_NAME = "drafting"
BESIDE = f"{_NAME}/%/%"
"""The names of texts that stand beside the drafts of chats, for SQL's `like`."""


def who_types(chat_id: int) -> str:
    """The flag that names the window whose text the chat's draft is."""
    return f"{_NAME}/{chat_id}"


def text_of(chat_id: int, window: str, process: str = "") -> str:
    """The flag that holds another window's text."""
    return f"{_NAME}/{chat_id}/{window}/{process}"


def beside(db: SqliteDatabase, chat_id: int) -> list[tuple[str, str, str]]:
    """(flag, process, text) of what other windows have typed in a chat, oldest first."""
    begin = f"{_NAME}/{chat_id}/"
    rows = db.table("flags").rows_where("substr(name, 1, ?) = ?", [len(begin), begin], order_by="rowid")
    return [(row["name"], row["name"].rpartition("/")[2], row["value"]) for row in rows]


def remove(db: SqliteDatabase, chat_id: int) -> None:
    """Nobody types in a chat that is no more."""
    begin = f"{_NAME}/{chat_id}/"
    db.execute("delete from flags where name = ? or substr(name, 1, ?) = ?", [who_types(chat_id), len(begin), begin])
