"""What killed programs left in a home: half-made files, and adapters that no row names. Never what is in use."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from .. import leftovers
from ..paths import Paths
from ..store import Store
from ..store.processes import process_lives

_MIX = re.compile(r"mix-(\d+)-\w+")


def sweep(store: Store, paths: Paths) -> None:
    """Delete it. Quick where there is nothing: a look at the names in a few folders."""
    leftovers.sweep(paths)
    # The folders first: one that a run makes meanwhile is not among them, and one that ends has its row by then.
    runs, mixes = list(paths.adapters.glob("run-*")), list(paths.adapters.glob("mix-*"))
    if not runs and not mixes:
        return
    with store.database.read() as db:
        working = any(
            process_lives(row["process"]) for row in db.table("runs").rows_where("state = 'running'", select="process")
        )
    # By name: in a home that was moved, or is reached through a link, the paths begin otherwise.
    kept = {Path(record.gguf_path).parent.name for record in store.adapters.list() if record.gguf_path}
    for folder in [*([] if working else runs), *(mix for mix in mixes if leftovers.is_dead(mix, _MIX))]:
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
