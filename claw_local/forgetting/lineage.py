"""Which adapters learned from what is forgotten, what takes their place, and what is to be learned again.

It must never delete a file: it says which ones to.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..adapters.registry import put_into_use, verify
from ..errors import AdapterError
from ..store import AdapterRecord, Store
from ..store.forgetting import Going

REASON = "It had learned from what you had forgotten, so its files are gone."
OWN_JUDGES = "judge.own."
"""Flags of this name hold the person's own judge's adapters: JSON with a path and a lineage."""


@dataclass(frozen=True)
class Judge:
    """The person's own adapter of the judge, by the flag it is kept under."""

    flag: str
    path: Path


def stained(adapters: Sequence[AdapterRecord], going: Going, hints: Collection[str]) -> list[AdapterRecord]:
    """The adapters that learned from what goes, their descendants too; oldest first.

    Args:
        hints: texts of hints that go: the teacher of every lesson had them in its prompt.
    """
    found: dict[int, AdapterRecord] = {}
    for record in sorted(adapters, key=lambda record: record.id):
        taught = record.recipe.get("hints", ())
        learned = not going.taught.isdisjoint(record.lineage) or any(hint in taught for hint in hints)
        made_of = {record.parent_id, *(part for part, _ in record.recipe.get("mix", ()))}
        if record.state != "forgotten" and (learned or not made_of.isdisjoint(found)):
            found[record.id] = record
    return list(found.values())


def judges(store: Store, going: Going) -> list[Judge]:
    """The person's own judge's adapters that learned from what goes."""
    found = []
    with store.database.read() as db:
        rows = list(db.table("flags").rows_where("name like ? and value != ''", [f"{OWN_JUDGES}%"]))
    for row in rows:
        kept = json.loads(row["value"])
        if not going.taught.isdisjoint(kept.get("lineage", ())):
            found.append(Judge(row["name"], Path(kept["path"])))
    return found


def clean_ancestor(store: Store, record: AdapterRecord, going_ids: Collection[int]) -> AdapterRecord | None:
    """The newest adapter above one that stays and whose file is whole; None: the base."""
    known = {other.id: other for other in store.adapters.list()}
    above = known.get(record.parent_id)
    seen: set[int] = set()
    while above is not None and above.id not in seen:
        seen.add(above.id)
        if above.id not in going_ids and above.state != "forgotten":
            try:
                verify(above)
                return above
            except AdapterError:
                pass  # Its file is gone or was changed.
        above = known.get(above.parent_id)
    return None


def take_out(store: Store, gone: Sequence[AdapterRecord], own: Sequence[Judge], going: Going) -> tuple[list[int], int]:
    """Mark these adapters as forgotten, put clean ones in their place, and queue what is left of their lessons.

    Returns:
        (ids of the adapters now in use in their place, 0 for the base; how many lessons are to be learned again)
    """
    ids = {record.id for record in gone}
    in_use, again = [], set[int]()
    for record in gone:
        if record.state == "active":
            instead = clean_ancestor(store, record, ids)
            put_into_use(store, instead, record.model_sha256)
            in_use.append(instead.id if instead else 0)
            again |= set(record.lineage) - set(instead.lineage if instead else ())
    for record in gone:
        store.adapters.update(
            record.id,
            state="forgotten",
            peft_dir="",
            gguf_path="",
            sha256={},
            recipe={},
            metrics={},
            lineage=sorted(set(record.lineage) - going.messages),
            reason=REASON,
        )
    for judge in own:
        store.flags.set(judge.flag, "")
    with store.database.write() as db:
        if "adapter_id" in db.table("chats").columns_dict:  # Chats that kept to one of them go by what is in use.
            marks = ", ".join(str(record.id) for record in gone)
            db.conn.execute(f"update chats set adapter_id = null where adapter_id in ({marks})")
        queued = 0
        for message_id in sorted(again - going.taught):
            cursor = db.conn.execute("update samples set times_used = 0 where message_id = ?", (message_id,))
            queued += cursor.rowcount
    return in_use, queued
