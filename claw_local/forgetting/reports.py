"""What the gate wrote about answers: the texts of it that are forgotten. It must never change a figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..files import write_whole
from ..paths import Paths
from ..store import AdapterRecord, Store
from . import sweeping
from .lineage import REASON
from .texts import Texts


def clean(store: Store, paths: Paths, gone: Sequence[AdapterRecord], texts: Texts) -> list[Path]:
    """Take the texts out of the gate's reports in the tables. Returns files of such reports, which go."""
    ids = {record.id for record in gone}
    files: list[Path] = []
    for record in store.adapters.list():
        if record.id in ids:
            continue
        clean = {
            name: without_texts(value, texts)
            for name, value in (("metrics", record.metrics), ("recipe", record.recipe), ("reason", record.reason))
        }
        if clean != {"metrics": record.metrics, "recipe": record.recipe, "reason": record.reason}:
            store.adapters.update(record.id, **clean)
        folder = Path(record.gguf_path).parent
        if record.gguf_path and paths.adapters in folder.parents:
            report = folder / "gate.json"
            if any(sweeping.holds(folder / name, texts) for name in ("gate.json", "gate.md")):
                write_whole(report, json.dumps(clean["metrics"].get("gate", {}), indent=2).encode())
                files.append(folder / "gate.md")
    with store.database.write() as db:
        for identity, adapter, result, detail in db.conn.execute(
            "select id, adapter_id, result, detail from runs"
        ).fetchall():
            kept = json.loads(result or "{}")
            if adapter in ids or kept.get("adapter") in ids:
                kept = {**kept, "gate": {}, "reason": REASON} if kept else kept
            changed = (
                json.dumps(without_texts(kept, texts)),
                without_texts(detail or "", texts),
            )
            if changed != (result, detail or ""):
                db.conn.execute("update runs set result = ?, detail = ? where id = ?", (*changed, identity))
    return files


def without_texts(value: Any, texts: Texts) -> Any:
    """A report without the examples, and the sentences, in which a text stands."""
    if isinstance(value, dict):
        return {key: without_texts(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [without_texts(item, texts) for item in value if not (isinstance(item, dict) and _has(item, texts))]
    return "" if isinstance(value, str) and _has(value, texts) else value


def _has(value: Any, texts: Texts) -> bool:
    if isinstance(value, dict):
        return any(_has(item, texts) for item in value.values())
    if isinstance(value, list):
        return any(_has(item, texts) for item in value)
    return isinstance(value, str) and texts.stand_in(value)
