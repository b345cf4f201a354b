"""The judges' exams: each judge takes each once, and what came of it is kept. It must never know how one is held."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from .database import Database, now
from .records import ExamQuestion, ExamRecord


class Exams:
    """The table of exams."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, record: ExamRecord) -> ExamRecord:
        """Keep a result; one of the same judge in the same question is replaced."""
        row = {**asdict(record), "groups": json.dumps(record.groups), "passed": int(record.passed), "created_at": now()}
        with self._database.write() as db:
            db.table("exams").upsert(row, pk=("model", "adapter", "version", "question"))
        return _exam(row)

    def find(self, model: str, adapter: str, version: str, question: ExamQuestion) -> ExamRecord | None:
        """The result of a judge; None if it has not taken that exam."""
        with self._database.read() as db:
            for row in db.table("exams").rows_where(
                "model = ? and adapter = ? and version = ? and question = ?", [model, adapter, version, question]
            ):
                return _exam(row)
        return None

    def list(self) -> list[ExamRecord]:
        """All results, newest first."""
        with self._database.read() as db:
            return [_exam(row) for row in db.table("exams").rows_where(order_by="created_at desc")]


def _exam(row: dict[str, Any]) -> ExamRecord:
    return ExamRecord(**{**row, "groups": json.loads(row["groups"]), "passed": bool(row["passed"])})
