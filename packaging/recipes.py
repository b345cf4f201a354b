"""Fills the Homebrew formula in for one sdist:

python packaging/recipes.py SDIST --url URL --homepage URL > claw-local.rb
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

TEMPLATE = Path(__file__).parent / "homebrew" / "claw-local.rb.in"


def formula(sdist: Path, url: str, homepage: str) -> str:
    """The formula for this sdist, which will be found at `url`."""
    filled = TEMPLATE.read_text("utf-8")
    values = {"URL": url, "HOMEPAGE": homepage, "SHA256": hashlib.sha256(sdist.read_bytes()).hexdigest()}
    for name, value in values.items():
        filled = filled.replace(f"@{name}@", value)
    return filled


def main(arguments: list[str]) -> int:
    """Print the formula; returns 1 if there is no such sdist."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":", maxsplit=1)[0])
    parser.add_argument("sdist", type=Path, metavar="SDIST")
    parser.add_argument("--url", required=True, help="where the sdist will be found")
    parser.add_argument("--homepage", required=True, help="the project's page")
    chosen = parser.parse_args(arguments)
    try:
        print(formula(chosen.sdist, chosen.url, chosen.homepage), end="")
    except OSError as error:
        sys.stderr.write(f"Cannot read {chosen.sdist}: {error.strerror}. Build it: python -m build --sdist\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
