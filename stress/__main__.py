"""Put a promise under stress.

    python -m stress kill --tries 300
    python -m stress fuzz --tries 1000000
    python -m stress disk
    python -m stress poison
    python -m stress load --seconds 600

Ends with status 1 if a promise did not hold. The same seed tries the same.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from collections.abc import Sequence

from .outcome import show

NAMES = {
    "kill": "kill processes at random moments, and see that nothing is lost, locked or left lying",
    "fuzz": "feed damaged input to every reader",
    "disk": "fill the disk, and make writing fail",
    "poison": "plant attacks on what is learned",
    "load": "write from many processes at once",
}


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    named = "\n".join(f"  {name:8} {what}" for name, what in NAMES.items())
    parser = argparse.ArgumentParser(
        prog="python -m stress",
        description=f"{__doc__}\n{named}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--tries", type=int, help="how many (kill, fuzz)")
    parser.add_argument("--seconds", type=float, help="begin nothing new after this long")
    parser.add_argument("--only", nargs="+", default=[], metavar="KIND", help="these kinds alone (kill, fuzz)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    logging.disable(logging.CRITICAL)
    part = importlib.import_module(f".{options.name}", __package__)
    try:
        return show([part.run(options)], as_json=options.json)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
