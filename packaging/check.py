"""Runs every check of the project: `.venv/bin/python packaging/check.py`. With options, only pytest, with them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKS = {
    "lint": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    "tests": ["pytest", "-q", "-n", "auto", "--dist", "loadfile"],
}

SEEN_WITH = {
    "the chat in a browser": ("chromium", "chromium-browser", "google-chrome"),
    "the chat in a real terminal": ("tmux",),
}
"""What some tests look through, and are skipped without. A person installs it: no package of ours brings it."""


def unseen() -> list[str]:
    """A sentence for each thing that no test can look at on this machine, with what to install for it."""
    return [
        f"Not tested: {what}, for this machine has no {names[0]}. Install it (Debian: sudo apt install {names[0]})."
        for what, names in SEEN_WITH.items()
        if not any(shutil.which(name) for name in names)
    ]


def main(options: list[str]) -> int:
    """Run the checks one after the other, all of them whatever fails; returns 1 if one failed."""
    chosen = {"tests": ["pytest", "-q", *options]} if options else CHECKS
    failed = []
    for name, command in chosen.items():
        print(f"== {name}: {' '.join(command)}", flush=True)
        started = time.monotonic()
        if subprocess.call([sys.executable, "-m", *command], cwd=ROOT) != 0:
            failed.append(name)
        print(f"== {name}: {time.monotonic() - started:.0f} s", flush=True)
    for sentence in unseen():
        print(sentence, flush=True)
    print(f"Failed: {', '.join(failed)}" if failed else "All checks passed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
