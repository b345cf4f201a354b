"""Makes the bootstrap's parts importable: packaging/ is a folder of scripts, not a package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT
