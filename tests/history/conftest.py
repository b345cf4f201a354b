"""Stores to import into, and exports as other programs write them."""

from __future__ import annotations

from typing import Any

import pytest

from claw_local.history import History
from claw_local.paths import Paths
from claw_local.store import Store


@pytest.fixture
def store(home: Paths) -> Store:
    return Store(home)


@pytest.fixture
def history(store: Store) -> History:
    return History(store)


class ChatGPT:
    """One conversation, node by node, as ChatGPT exports it."""

    def __init__(self, identity: str = "c1", title: str = "Kites", **fields: Any) -> None:
        self.nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
        self.fields: dict[str, Any] = {
            "title": title,
            "create_time": 1700000000.25,
            "update_time": 1700000500.0,
            "conversation_id": identity,
            **fields,
        }
        self.last = "root"

    def say(self, key: str, role: str, text: str, *, after: str | None = None, **fields: Any) -> ChatGPT:
        parent = self.last if after is None else after
        message = {
            "id": key,
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": 1700000000.0 + len(self.nodes),
            "content": {"content_type": "text", "parts": [text]},
            "status": "finished_successfully",
            "metadata": {},
            "recipient": "all",
            **fields,
        }
        self.nodes[key] = {"id": key, "message": message, "parent": parent, "children": []}
        self.nodes[parent]["children"].append(key)
        self.last = key
        return self

    def export(self, current: str | None = None) -> dict[str, Any]:
        return {**self.fields, "mapping": self.nodes, "current_node": current or self.last}


def shown(store: Store, chat_id: int) -> list[tuple[str, str]]:
    """The branch that is shown, as (role, text)."""
    return [(m.role, m.content) for m in store.messages.branch(store.chats.get(chat_id).head_id)]
