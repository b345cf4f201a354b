"""Runs every check of the project: `.venv/bin/python packaging/check.py`. With options, only pytest, with them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKS = {
    "lint": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    "tests": ["pytest", "-q"],
}


def main(options: list[str]) -> int:
    """Run the checks one after the other, all of them whatever fails; returns 1 if one failed."""
    chosen = {"tests": [*CHECKS["tests"], *options]} if options else CHECKS
    failed = []
    for name, command in chosen.items():
        print(f"== {name}: {' '.join(command)}", flush=True)
        started = time.monotonic()
        if subprocess.call([sys.executable, "-m", *command], cwd=ROOT) != 0:
            failed.append(name)
        print(f"== {name}: {time.monotonic() - started:.0f} s", flush=True)
    print(f"Failed: {', '.join(failed)}" if failed else "All checks passed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
