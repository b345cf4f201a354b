"""Statements about many ids at once, in parts that SQLite takes. It must never know what the tables mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlite_utils import Database as SqliteDatabase

AT_ONCE = 500
"""Ids named in one statement."""


def first_column(db: SqliteDatabase, query: str, *values: Any) -> list[int]:
    return [int(row[0]) for row in db.conn.execute(query, values).fetchall()]


def rows_of(db: SqliteDatabase, what: str, table: str, column: str, ids: Iterable[int]) -> Iterator[Any]:
    """Rows whose `column` is one of these ids."""
    for part in _parts(ids):
        query = f"select {what} from {table} where {column} in ({', '.join('?' * len(part))})"
        yield from db.conn.execute(query, part).fetchall()


def delete_of(db: SqliteDatabase, table: str, column: str, ids: Iterable[int]) -> None:
    for part in _parts(ids):
        db.conn.execute(f"delete from {table} where {column} in ({', '.join('?' * len(part))})", part)


def change_of(db: SqliteDatabase, table: str, change: str, ids: Iterable[int]) -> None:
    for part in _parts(ids):
        db.conn.execute(f"update {table} set {change} where id in ({', '.join('?' * len(part))})", part)


def _parts(ids: Iterable[int]) -> Iterator[Sequence[int]]:
    ordered = sorted(set(ids))
    for start in range(0, len(ordered), AT_ONCE):
        yield ordered[start : start + AT_ONCE]
