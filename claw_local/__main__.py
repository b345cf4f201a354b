"""`python -m claw_local`, which is `claw-local`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. `--version` answers before anything else is imported."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from . import __version__

        print(f"claw-local {__version__}")
        return
    from .cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
