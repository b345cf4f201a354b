"""Receipts: that something was forgotten, when and how much, without a word of it. It must never hold a text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..store import Store
from ..store.forgetting import Request

FLAG = "forgotten"


@dataclass(frozen=True)
class Receipt:
    """What was forgotten, without a word of it.

    Attributes:
        at: when, UTC.
        asked: how it was named: "chats" and "messages" by id, "since" when, "containing" a text that is not kept.
        adapters: ids of the adapters that are gone; in_use: what took the place of those in use, 0 is the base.
        again: how many lessons wait to be learned again without it.
        files: how many files and folders were deleted.
        left: what could not be cleaned, in words; empty: nothing of it is left in this home.
    """

    at: str
    asked: dict[str, Any]
    counts: dict[str, int]
    adapters: tuple[int, ...] = ()
    in_use: tuple[int, ...] = ()
    judges: int = 0
    again: int = 0
    files: int = 0
    left: tuple[str, ...] = ()


def asked_for(request: Request) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    if request.chats:
        asked["chats"] = list(request.chats)
    if request.messages:
        asked["messages"] = list(request.messages)
    if request.since:
        asked["since"] = request.since
    if request.containing:
        asked["containing"] = True
    return asked


def without(text: str, words: str) -> str:
    """A receipt must not hold the text: not in a file's name either."""
    return words.replace(text, "…") if text else words


def kept(store: Store) -> list[Receipt]:
    """Oldest first."""
    found = json.loads(store.flags.get(FLAG) or "[]")
    return [_receipt(one) for one in found]


def _receipt(values: dict[str, Any]) -> Receipt:
    columns: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    return Receipt(**columns)


def keep(store: Store, receipts: Sequence[Receipt]) -> None:
    """Write them all down."""
    store.flags.set(FLAG, json.dumps([asdict(receipt) for receipt in receipts]))
