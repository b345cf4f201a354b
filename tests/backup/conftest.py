"""A home with something in it, and its backup."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw_local.backup import Backup, write_backup
from claw_local.paths import Paths
from claw_local.store import Store

from .homes import fill


@pytest.fixture
def backed(home: Paths, tmp_path: Path) -> tuple[Store, Backup]:
    store = fill(home, "old")
    return store, write_backup(store, home, tmp_path / "my.backup")
