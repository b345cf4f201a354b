"""Labelled examples of next states: reading the shipped ones, and files in the same format. It must never judge.

What each field means, and how the shipped examples were labelled and split, stands in `data/judge/README.md`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ..errors import UsageError
from ..language import _
from ..named_text import read_text

Split = Literal["train", "dev", "test"]
Score = Literal[-1, 0, 1]
NextRole = Literal["user", "tool"]

SPLITS: tuple[Split, ...] = get_args(Split)

_ALSO_CALLED = {"lang": "language", "next_role": "role"}
"""Other names under which a file may hold a field."""


@dataclass(frozen=True)
class Example:
    """A reply, what came next, and what that says of the reply.

    Attributes:
        question: what the reply answered; "" where a file does not say.
        next_role, next: who came next, and with what.
        score: -1 bad, 0 does not say, +1 good.
        directive: whether the next message says how the reply should have been.
        hint: the ideal hint; "" if there is none.
        split, situation, kind: where it belongs and what sort of message it is; "" where a file does not say.
        note: why the label is what it is, where that can be argued about.
    """

    id: str
    lang: str
    reply: str
    next_role: NextRole
    next: str
    score: Score
    directive: bool
    question: str = ""
    hint: str = ""
    split: str = ""
    situation: str = ""
    kind: str = ""
    note: str = ""

    @property
    def sort(self) -> str:
        """What sort of message it is; its situation, in files that know no sorts."""
        return self.kind or self.situation or "unknown"


def shipped(split: Split) -> list[Example]:
    """The examples of one split that come with the package."""
    file = resources.files("claw_local.data").joinpath("judge").joinpath(f"{split}.jsonl")
    return parse(file.read_text("utf-8"), f"{split}.jsonl")


def scored(split: Literal["train", "dev"]) -> list[Example]:
    """The shipped examples that have a score alone: whether they direct, and the ideal hint, is not written down."""
    text = resources.files("claw_local.data").joinpath("judge").joinpath("scored.jsonl").read_text("utf-8")
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        row = json.loads(line)
        if row["split"] != split:
            continue
        for place, (score, kind, message) in enumerate(row["next"], start=1):
            found.append(
                Example(
                    id=f"scored-{number}-{place}",
                    lang=row["lang"],
                    reply=row["reply"],
                    next_role="user",
                    next=message,
                    score=score,
                    directive=False,
                    question=row["question"],
                    split=split,
                    situation=f"scored-{number}",
                    kind=kind,
                )
            )
    return found


def read(path: Path, split: Split | None = None) -> list[Example]:
    """The examples of a file of JSON lines; with a split, only those that say they belong to it.

    Raises:
        UsageError: it cannot be read, a line is not an example, or none is left.
    """
    try:
        text = read_text(path.expanduser())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else _("it is not UTF-8 text")
        raise UsageError(
            _("Cannot read {path}: {reason}. Name a file of JSON lines.", path=path, reason=reason)
        ) from error
    found = [example for example in parse(text, path.name) if split in (None, example.split)]
    if not found:
        missing = (
            _("There is no example of the split {split} in {path}.", split=split, path=path)
            if split
            else _("There is no example in {path}.", path=path)
        )
        raise UsageError(missing + " " + _("Each line is a JSON object with reply, next and score."))
    return found


def parse(text: str, source: str) -> list[Example]:
    """The examples in JSON lines. Empty lines and fields that are not known are passed over.

    Raises:
        UsageError: a line is not an example; the message names `source` and the line.
    """
    return [
        _example(line, _("{source}, line {number}", source=source, number=number))
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]


def _example(line: str, where: str) -> Example:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            _("{where} is not JSON: {error}. Mend or remove that line.", where=where, error=error)
        ) from error
    if not isinstance(row, dict):
        raise UsageError(_("{where} is not a JSON object. Mend or remove that line.", where=where))
    for name, other in _ALSO_CALLED.items():
        row.setdefault(name, row.get(other))
    missing = [name for name in ("reply", "next") if not isinstance(row.get(name), str)]
    if missing:
        raise UsageError(
            _(
                "{where} has no text under {names}. Mend or remove that line.",
                where=where,
                names=_(" and ").join(missing),
            )
        )
    if row.get("score") not in (-1, 0, 1) or isinstance(row.get("score"), bool):
        raise UsageError(_("{where}: the score has to be -1, 0 or 1. Mend or remove that line.", where=where))
    role = row["next_role"] or "user"
    if role not in get_args(NextRole):
        raise UsageError(
            _("{where}: next_role is user or tool, not {role!r}. Mend or remove that line.", where=where, role=role)
        )
    return Example(
        id=_text(row, "id") or where,
        lang=_text(row, "lang") or "unknown",
        reply=row["reply"],
        next_role=cast(NextRole, role),
        next=row["next"],
        score=cast(Score, int(row["score"])),
        directive=bool(row.get("directive")),
        **{name: _text(row, name) for name in ("question", "hint", "split", "situation", "kind", "note")},
    )


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return "" if value is None else str(value)
