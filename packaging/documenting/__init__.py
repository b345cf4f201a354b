"""Pages that are made from the program itself, so that they cannot tell anything else than it does."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARENTS = {"claw_local": ROOT, "claw_app": ROOT / "app", "claw_trainer": ROOT / "trainer"}
"""The packages, and the folder each lies in."""


def reach_packages() -> None:
    """Make the packages importable from the source, also where they are not installed."""
    for parent in PARENTS.values():
        if str(parent) not in sys.path:
            sys.path.append(str(parent))


reach_packages()
