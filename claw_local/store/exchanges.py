"""Which messages go together when some are forgotten, and how what stays is joined. It must never touch a database."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Node(NamedTuple):
    """A message without its text."""

    id: int
    parent_id: int | None
    role: str
    side: bool = False


@dataclass(frozen=True)
class Cut:
    """What becomes of one chat.

    Attributes:
        gone: messages that go.
        joined: kept messages whose parent goes -> the kept reply they now follow; None: they become first ones.
        after: kept messages that were said with one that goes in view.
        before: kept replies whose next state goes, or another one takes its place.
        early: whether one of the chat's first messages goes, from which its title may have been made.
        empty: whether nothing of the chat is left.
    """

    gone: frozenset[int]
    joined: dict[int, int | None]
    after: frozenset[int]
    before: frozenset[int]
    early: bool
    empty: bool


EARLY = 4
"""From how many of a branch's first messages a title is made."""


def cut(nodes: Iterable[Node], chosen: Collection[int]) -> Cut:
    """Take messages out of a chat's tree.

    A question goes with the replies to it, and a reply with its question unless another version of it stays. What
    follows them is kept, and joined to the reply before.
    """
    by_id = {node.id: node for node in nodes}
    children: dict[int, list[Node]] = {}
    for node in by_id.values():
        if node.parent_id is not None:
            children.setdefault(node.parent_id, []).append(node)
    gone = {identity for identity in chosen if identity in by_id}
    waiting = list(gone)
    while waiting:
        node = by_id[waiting.pop()]
        found: list[int | None] = []
        if node.role == "assistant":
            replies = [child.id for child in children.get(node.parent_id or 0, []) if child.role == "assistant"]
            if node.parent_id in by_id and all(reply in gone for reply in replies):
                found = [node.parent_id]
            # What a tool returned goes with the reply that called it.
            found += [child.id for child in children.get(node.id, []) if child.role == "tool"]
        else:
            found = [child.id for child in children.get(node.id, []) if child.role in ("assistant", "tool")]
        new = [identity for identity in found if identity is not None and identity not in gone]
        gone.update(new)
        waiting += new
    if gone:  # A title was made with the beginning of the chat in view.
        gone.update(node.id for node in by_id.values() if node.side)

    def kept_reply(parent_id: int | None) -> int | None:
        while parent_id is not None and (parent_id in gone or by_id[parent_id].role != "assistant"):
            parent_id = by_id[parent_id].parent_id
        return parent_id

    kept = [node for node in by_id.values() if node.id not in gone]
    joined = {node.id: kept_reply(node.parent_id) for node in kept if node.parent_id in gone}
    after = {
        node.id for node in kept if any(above in gone for above in _above(node, by_id)) and node.role == "assistant"
    }
    before = {reply for reply in joined.values() if reply is not None}
    before |= {
        parent
        for identity in gone
        if (parent := by_id[identity].parent_id) is not None
        and parent not in gone
        and by_id[identity].role != "assistant"
        and by_id[parent].role == "assistant"
    }
    early = any(not by_id[identity].side and len(_above(by_id[identity], by_id)) < EARLY for identity in gone)
    return Cut(frozenset(gone), joined, frozenset(after), frozenset(before), early, bool(gone) and not kept)


def _above(node: Node, by_id: dict[int, Node]) -> list[int]:
    """The ids of all messages before one, nearest first."""
    found = []
    while node.parent_id is not None and node.parent_id in by_id:
        node = by_id[node.parent_id]
        found.append(node.id)
    return found
