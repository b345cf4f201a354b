"""What is still to be deleted, kept until it is, so that a crash or a file in use cannot make it forgotten itself.

It must never name a file outside of the folders that forgetting cleans.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from ..paths import Paths
from ..store import Store
from .receipts import Receipt

FLAG = "forgotten.files"
HOLDS = " holds it"
"""Ends the sentence of a receipt about a file that nobody but the person may change."""


def files(store: Store, paths: Paths) -> list[Path]:
    """What waits to be deleted."""
    try:
        names = json.loads(store.flags.get(FLAG) or "[]")
    except ValueError:
        return []
    found = [paths.data / name for name in names if isinstance(name, str) and _is_ours(paths, name)]
    # After a restore, an adapter may have a folder again that once was to go.
    used = {Path(record.gguf_path).parent.name for record in store.adapters.list() if record.gguf_path}
    return [entry for entry in found if entry.name not in used]


def add(store: Store, paths: Paths, entries: Iterable[Path]) -> None:
    """Let these wait too."""
    keep(store, paths, [*files(store, paths), *entries])


def keep(store: Store, paths: Paths, entries: Iterable[Path]) -> None:
    """Let these wait, and no others."""
    inside = {entry.relative_to(paths.data).as_posix() for entry in entries if entry.is_relative_to(paths.data)}
    names = sorted(name for name in inside if _is_ours(paths, name))
    value = json.dumps(names) if names else ""
    if value != store.flags.get(FLAG):
        store.flags.set(FLAG, value)


def still_named(receipt: Receipt) -> list[str]:
    """What it says of the person's own files, unless they were changed since: the text to look for is not kept."""
    return [words for words in receipt.left if words.endswith(HOLDS) and not _changed(words, receipt.at)]


def _changed(words: str, moment: str) -> bool:
    try:
        changed = Path(words.removesuffix(HOLDS)).stat().st_mtime
    except OSError:
        return True
    return datetime.fromtimestamp(changed, UTC).isoformat(timespec="microseconds") > moment


def _is_ours(paths: Paths, name: str) -> bool:
    parts = PurePosixPath(name).parts
    folders = {folder.name for folder in (paths.adapters, paths.backups, paths.runs)}
    return len(parts) > 1 and parts[0] in folders and ".." not in parts
