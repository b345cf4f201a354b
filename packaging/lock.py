"""Pins every package with its hashes: `python packaging/lock.py` writes packaging/locked anew. Needs uv.

    pip install --require-hashes -r packaging/locked/chat.txt     # chatting, serving, tools
    pip install --require-hashes -r packaging/locked/learn.txt    # with learning
    pip install --no-deps .

The files hold for every platform that the packages have. They are for installations from the repository; packages built
from it keep their ranges.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "packaging" / "locked"
SETS = {
    "chat": ("tiny", "serve", "web", "mcp", "ollama", "openai", "encrypted"),
    "learn": ("tiny", "serve", "web", "mcp", "ollama", "openai", "encrypted", "train"),
}
"""The extras in each file."""


def command(name: str) -> list[str]:
    """How uv is called for one file."""
    extras = [part for extra in SETS[name] for part in ("--extra", extra)]
    constraints = ["-c", "packaging/constraints-cpu.txt"] if "train" in SETS[name] else []
    return [
        *("uv", "pip", "compile", "pyproject.toml", *extras, *constraints, "--generate-hashes", "--universal"),
        *("--python-version", "3.11", "--no-header", "--no-annotate", "--quiet"),
        *("--output-file", str((FOLDER / f"{name}.txt").relative_to(ROOT))),
    ]


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name in SETS:
        try:
            subprocess.run(command(name), check=True, cwd=ROOT)
        except FileNotFoundError:
            print("uv is not installed: https://docs.astral.sh/uv says how to get it.", file=sys.stderr)
            return 1
        except subprocess.CalledProcessError as error:
            return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
